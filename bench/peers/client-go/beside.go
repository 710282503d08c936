package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/cache"
)

// besideWriter list|by-node|get READERS RATE MILLISECONDS: reads a second and writes a second of
// READERS goroutines beside one that updates single objects, as many as it can when RATE is 0. As
// many threads run Go as there are processors.
func besideWriter(d *driver, words []string) ([]float64, error) {
	store := d.store()
	readers, rate := number(words[1]), number(words[2])
	span := time.Duration(number(words[3])) * time.Millisecond
	keys := make([]string, len(d.world.pods))
	for at, p := range d.world.pods {
		keys[at], _ = key(p)
	}
	var stop atomic.Bool
	var reads, writes atomic.Int64
	var all sync.WaitGroup
	runtime.GC()
	began := time.Now()
	for reader := range readers {
		all.Go(func() {
			read := reading(store, words[0], keys, d.world.nodes, reader)
			count := int64(0)
			for !stop.Load() {
				read()
				count++
			}
			reads.Add(count)
		})
	}
	all.Go(func() { writes.Store(updating(d, store, rate, &stop)) })
	time.Sleep(span)
	stop.Store(true)
	all.Wait()
	seconds := time.Since(began).Seconds()
	return []float64{float64(reads.Load()) / seconds, float64(writes.Load()) / seconds}, nil
}

func reading(store cache.Indexer, what string, keys, nodes []string, reader int) func() {
	at, sum := reader*7919, 0
	switch what {
	case "get":
		return func() {
			at++
			object, _, _ := store.GetByKey(keys[at*31%len(keys)])
			sum += len(object.(*pod).version)
		}
	case "by-node":
		return func() {
			at++
			objects, _ := store.ByIndex("node", nodes[at%len(nodes)])
			sum += use(objects, "visit")
		}
	default:
		return func() { sum += len(store.List()) }
	}
}

// updating paces itself by the millisecond, as the other side does.
func updating(d *driver, store cache.Indexer, rate int, stop *atomic.Bool) int64 {
	count := int64(0)
	began := time.Now()
	for !stop.Load() {
		due := int64(time.Since(began).Seconds() * float64(rate))
		for rate == 0 && !stop.Load() || count < due {
			if err := store.Update(d.world.modify()); err != nil {
				fail(err.Error())
			}
			count++
		}
		if rate != 0 {
			time.Sleep(time.Millisecond)
		}
	}
	return count
}
