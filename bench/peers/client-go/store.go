package main

import (
	"bufio"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"k8s.io/client-go/tools/cache"
)

// A driver holds one store. It is built when the first command needs it, so that a command can
// measure the building.
type driver struct {
	world    *world
	built    cache.Indexer
	pipeline *pipeline
	// Holds one for each modification of the grid that is under way.
	room chan struct{}
	// What follows a command, where one needs more than a line.
	lines *bufio.Scanner
	// Latencies of the run that is under way, how many there will be, and who is told of them.
	micros   []float64
	expected int
	taking   func(micros []float64)
}

func newDriver(count int) *driver {
	return &driver{world: newWorld(count), room: make(chan struct{}, underWay)}
}

func (d *driver) store() cache.Indexer {
	if d.built == nil {
		d.built = newIndexer()
		if err := d.built.Replace(d.list(), strconv.Itoa(d.world.version)); err != nil {
			fail(err.Error())
		}
	}
	return d.built
}

func newIndexer() cache.Indexer {
	return cache.NewIndexer(key, indexers())
}

func indexers() cache.Indexers {
	by := func(value func(*pod) string) cache.IndexFunc {
		return func(object any) ([]string, error) { return []string{value(object.(*pod))}, nil }
	}
	return cache.Indexers{
		"namespace": cache.MetaNamespaceIndexFunc,
		"node":      by(func(p *pod) string { return p.node }),
		"app":       by(func(p *pod) string { return p.app }),
	}
}

// key does what cache.MetaNamespaceKeyFunc does, without its type switch.
func key(object any) (string, error) {
	p := object.(*pod)
	return p.namespace + "/" + p.name, nil
}

func (d *driver) list() []any {
	list := make([]any, len(d.world.pods))
	for at, p := range d.world.pods {
		list[at] = p
	}
	return list
}

func perCall(began time.Time, calls int) float64 {
	return float64(time.Since(began).Nanoseconds()) / float64(calls)
}

// byIndex INDEX collect|visit|count LISTS: nanoseconds for each list.
func byIndex(d *driver, words []string) ([]float64, error) {
	store, lists := d.store(), number(words[2])
	values := d.world.namespaces
	if words[0] == "node" {
		values = d.world.nodes
	}
	sum := 0
	began := time.Now()
	for at := range lists {
		objects, err := store.ByIndex(words[0], values[at%len(values)])
		if err != nil {
			return nil, err
		}
		sum += use(objects, words[1])
	}
	figures := []float64{perCall(began, lists)}
	runtime.KeepAlive(sum)
	return figures, nil
}

func use(objects []any, how string) int {
	if how != "visit" {
		return len(objects)
	}
	sum := 0
	for _, object := range objects {
		sum += len(object.(*pod).version)
	}
	return sum
}

// memory: bytes an object that the store needs over the objects themselves.
func memory(d *driver, _ []string) ([]float64, error) {
	list := d.list()
	before := liveBytes()
	store := newIndexer()
	if err := store.Replace(list, "1"); err != nil {
		return nil, err
	}
	for range 2 * len(list) {
		if err := store.Update(d.world.modify()); err != nil {
			return nil, err
		}
	}
	// Every object that was replaced is garbage once the list does not hold it either.
	copy(list, d.list())
	over := float64(liveBytes()-before) / float64(len(list))
	runtime.KeepAlive(store)
	runtime.KeepAlive(list)
	return []float64{over}, nil
}

func liveBytes() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// write BATCH CHANGES: nanoseconds for each modification, BATCH in each transaction.
func write(d *driver, words []string) ([]float64, error) {
	batch, changes := number(words[0]), number(words[1])
	store := d.store()
	transactions, able := store.(cache.TransactionStore)
	if !able {
		return nil, fmt.Errorf("this client-go's store has no transactions")
	}
	var took time.Duration
	for range changes / batch {
		pods := make([]cache.Transaction, batch)
		for at := range pods {
			pods[at] = cache.Transaction{Object: d.world.modify(), Type: cache.TransactionTypeUpdate}
		}
		began := time.Now()
		if batch == 1 {
			if err := store.Update(pods[0].Object); err != nil {
				return nil, err
			}
		} else if err := transactions.Transaction(pods...); err != nil {
			return nil, err
		}
		took += time.Since(began)
	}
	return []float64{float64(took.Nanoseconds()) / float64(changes)}, nil
}

// replaceAll CHANGED: milliseconds of a Replace with a list of new objects of which CHANGED have a
// new version.
func replaceAll(d *driver, words []string) ([]float64, error) {
	store := d.store()
	for at, p := range d.world.pods {
		same := *p
		d.world.pods[at] = &same
	}
	for range number(words[0]) {
		d.world.modify()
	}
	list := d.list()
	version := strconv.Itoa(d.world.version)
	runtime.GC()
	began := time.Now()
	if err := store.Replace(list, version); err != nil {
		return nil, err
	}
	return []float64{float64(time.Since(began).Nanoseconds()) / 1e6}, nil
}

func number(word string) int {
	value, err := strconv.Atoi(word)
	if err != nil {
		fail(err.Error())
	}
	return value
}
