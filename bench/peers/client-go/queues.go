package main

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// fifo delta|real INPUTS: inputs a second from one goroutine to another, inputs accepted, deltas
// delivered. The objects exist beforehand.
func fifo(d *driver, words []string) ([]float64, error) {
	inputs := number(words[1])
	queue, consume, err := newFIFO(words[0])
	if err != nil {
		return nil, err
	}
	runtime.GC()
	delivered := 0
	var failed error
	var consumer sync.WaitGroup
	began := time.Now()
	consumer.Go(func() {
		for failed == nil {
			failed = consume(&delivered)
		}
	})
	for range inputs {
		if err := queue.Update(d.world.pods[d.world.random.IntN(len(d.world.pods))]); err != nil {
			return nil, err
		}
	}
	queue.Close()
	consumer.Wait()
	if !errors.Is(failed, cache.ErrFIFOClosed) {
		return nil, failed
	}
	rate := float64(inputs) / time.Since(began).Seconds()
	return []float64{rate, float64(inputs), float64(delivered)}, nil
}

// newFIFO gives a queue set up as shared informers do, and a call that consumes what it can.
func newFIFO(kind string) (cache.Queue, func(delivered *int) error, error) {
	switch kind {
	case "delta":
		queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{
			KeyFunction:           key,
			EmitDeltaTypeReplaced: true,
		})
		return queue, func(delivered *int) error {
			_, err := queue.Pop(func(object any, _ bool) error {
				*delivered += len(object.(cache.Deltas))
				return nil
			})
			return err
		}, nil
	case "real":
		queue := cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{
			KeyFunction:           key,
			AtomicEvents:          true,
			UnlockWhileProcessing: true,
		})
		return queue, func(delivered *int) error {
			return queue.PopBatch(
				func(deltas []cache.Delta, _ bool) error {
					*delivered += len(deltas)
					return nil
				},
				func(any, bool) error {
					*delivered++
					return nil
				})
		}, nil
	}
	return nil, nil, fmt.Errorf("no queue of kind %s", kind)
}

func queueKeys(keys, items int) []string {
	distinct := make([]string, items)
	for at := range distinct {
		distinct[at] = fmt.Sprintf("namespace-%03d/app-%03d-%020d", at%100, at%300, at%keys)
	}
	return distinct
}

// queueCycle KEYS ITEMS: nanoseconds of add, get, done on one goroutine.
func queueCycle(_ *driver, words []string) ([]float64, error) {
	items := number(words[1])
	keys := queueKeys(number(words[0]), items)
	queue := workqueue.NewTyped[string]()
	defer queue.ShutDown()
	runtime.GC()
	began := time.Now()
	for _, key := range keys {
		queue.Add(key)
		item, _ := queue.Get()
		queue.Done(item)
	}
	return []float64{perCall(began, items)}, nil
}

// queueWorkers KEYS ITEMS WORKERS: items a second that one goroutine adds and WORKERS get and are
// done with.
func queueWorkers(_ *driver, words []string) ([]float64, error) {
	items := number(words[1])
	keys := queueKeys(number(words[0]), items)
	queue := workqueue.NewTyped[string]()
	var workers sync.WaitGroup
	runtime.GC()
	began := time.Now()
	for range number(words[2]) {
		workers.Go(func() {
			for {
				item, shutdown := queue.Get()
				if shutdown {
					return
				}
				queue.Done(item)
			}
		})
	}
	for _, key := range keys {
		queue.Add(key)
	}
	queue.ShutDown()
	workers.Wait()
	return []float64{float64(items) / time.Since(began).Seconds()}, nil
}
