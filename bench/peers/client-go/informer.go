package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// ahead is how many events the watch may be ahead of the informer.
const ahead = 1024

// underWay is how many modifications of the grid may be on their way.
const underWay = 10

// A pipeline is a running shared informer, fed by a fake watch.
type pipeline struct {
	watcher  *watch.FakeWatcher
	informer cache.SharedIndexInformer
	// calls of every handler that is not blocked, each on a line of its own.
	calls []*calls
	stop  chan struct{}
	ended sync.WaitGroup
	what  string
}

type calls struct {
	count atomic.Int64
	_     [120]byte
}

// pipelineOf gives the running pipeline of this kind, or makes it.
func (d *driver) pipelineOf(what string, handlers int, first cache.ResourceEventHandler) (*pipeline, error) {
	if d.pipeline != nil && d.pipeline.what == what {
		return d.pipeline, nil
	}
	if d.pipeline != nil {
		close(d.pipeline.stop)
		d.pipeline.ended.Wait()
	}
	p := &pipeline{
		watcher: watch.NewFakeWithChanSize(ahead, false),
		stop:    make(chan struct{}),
		what:    what,
	}
	version := fmt.Sprint(d.world.version)
	p.informer = cache.NewSharedIndexInformerWithOptions(
		cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (kuberuntime.Object, error) {
				list := &podList{Items: slices.Clone(d.world.pods)}
				list.ResourceVersion = version
				return list, nil
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				return p.watcher, nil
			},
		}, noWatchList{}),
		&pod{},
		cache.SharedIndexInformerOptions{Indexers: indexers()},
	)
	if first != nil {
		if _, err := p.informer.AddEventHandler(first); err != nil {
			return nil, err
		}
	}
	for range handlers {
		counted := &calls{}
		p.calls = append(p.calls, counted)
		_, err := p.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			UpdateFunc: func(any, any) { counted.count.Add(1) },
		})
		if err != nil {
			return nil, err
		}
	}
	p.ended.Go(func() { p.informer.Run(p.stop) })
	for !p.informer.HasSynced() {
		time.Sleep(time.Millisecond)
	}
	// The initial adds must have been handled, too.
	before := p.total()
	p.watcher.Modify(d.world.modify())
	p.waitFor(before + int64(len(p.calls)))
	d.pipeline = p
	return p, nil
}

// noWatchList says that the source has no streaming lists.
type noWatchList struct{}

func (noWatchList) IsWatchListSemanticsUnSupported() bool { return true }

func (p *pipeline) total() int64 {
	total := int64(0)
	for _, calls := range p.calls {
		total += calls.count.Load()
	}
	return total
}

func (p *pipeline) waitFor(total int64) {
	for began := time.Now(); p.total() < total; time.Sleep(500 * time.Microsecond) {
		if time.Since(began) > 2*time.Minute {
			fail("the informer is stuck")
		}
	}
}

// pass sends so many events and waits for all calls: events a second, calls.
func (p *pipeline) pass(d *driver, events int) []float64 {
	runtime.GC()
	before := p.total()
	began := time.Now()
	for range events {
		p.watcher.Modify(d.world.modify())
	}
	p.waitFor(before + int64(events*len(p.calls)))
	seconds := time.Since(began).Seconds()
	return []float64{float64(events) / seconds, float64(p.total() - before)}
}

// informerEvents HANDLERS EVENTS.
func informerEvents(d *driver, words []string) ([]float64, error) {
	p, err := d.pipelineOf("events", number(words[0]), nil)
	if err != nil {
		return nil, err
	}
	return p.pass(d, number(words[1])), nil
}

// informerBlocked HANDLERS EVENTS: as informerEvents, with one more handler that never returns.
func informerBlocked(d *driver, words []string) ([]float64, error) {
	blocked := cache.ResourceEventHandlerFuncs{UpdateFunc: func(any, any) { select {} }}
	p, err := d.pipelineOf("blocked", number(words[0])-1, blocked)
	if err != nil {
		return nil, err
	}
	return p.pass(d, number(words[1]))[:1], nil
}

// informerLatency HANDLERS EVENTS RATE: p50, p99 and maximum of the time from sending an event to
// its handler, in microseconds.
func informerLatency(d *driver, words []string) ([]float64, error) {
	events, rate := number(words[1]), number(words[2])
	taken := make(chan []float64, 1)
	d.taking = func(micros []float64) { taken <- micros }
	d.expected = events
	timing := cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, object any) { d.time(object.(*pod)) }}
	p, err := d.pipelineOf("latency", number(words[0])-1, timing)
	if err != nil {
		return nil, err
	}
	runtime.GC()
	sent := 0
	for began := time.Now(); sent < events; time.Sleep(time.Millisecond) {
		due := min(events, int(time.Since(began).Seconds()*float64(rate)))
		for ; sent < due; sent++ {
			changed := d.world.modify()
			changed.sent = time.Now()
			p.watcher.Modify(changed)
		}
	}
	micros := <-taken
	slices.Sort(micros)
	at := func(q float64) float64 { return micros[int(q*float64(len(micros)-1))] }
	return []float64{at(0.5), at(0.99), at(1)}, nil
}

// time is called by one handler, one call after the other.
func (d *driver) time(p *pod) {
	if p.sent.IsZero() {
		return
	}
	d.micros = append(d.micros, float64(time.Since(p.sent).Nanoseconds())/1e3)
	if len(d.micros) == d.expected {
		micros := d.micros
		d.micros = nil
		d.taking(micros)
	}
}

// informerGrid READERS MILLISECONDS: lists a second and modifications a second, as in client-go's own
// benchmark, but with versions that rise.
func informerGrid(d *driver, words []string) ([]float64, error) {
	for _, p := range d.world.pods {
		p.namespace = "default"
	}
	readers, span := number(words[0]), time.Duration(number(words[1]))*time.Millisecond
	p, err := d.pipelineOf("grid", 1, cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(any, any) {
			select {
			case <-d.room:
			default:
			}
		},
	})
	if err != nil {
		return nil, err
	}
	runtime.GC()
	var lists atomic.Int64
	var stop atomic.Bool
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			sum := 0
			for !stop.Load() {
				_ = cache.ListAllByNamespace(p.informer.GetIndexer(), "default", labels.Everything(),
					func(object any) { sum += len(object.(*pod).version) })
				lists.Add(1)
			}
		})
	}
	first, sent := p.total(), int64(0)
	began := time.Now()
	all.Go(func() {
		for !stop.Load() {
			d.room <- struct{}{}
			p.watcher.Modify(d.world.modify())
			sent++
		}
	})
	time.Sleep(span)
	seconds := time.Since(began).Seconds()
	figures := []float64{float64(lists.Load()) / seconds, float64(p.total()-first) / seconds}
	stop.Store(true)
	all.Wait()
	p.waitFor(first + sent)
	return figures, nil
}
