package main

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

// near is how many pods are in the namespace that is asked for; every other one of them matches.
const near = 1000

// stray says that one in so many of the other pods has either label.
const stray = 100

// label gives every pod its two labels, before the store is filled.
func (w *world) label() {
	const wanted = "wanted"
	for at, p := range w.pods {
		if at < near {
			p.namespace = wanted
		}
		matches := at < near && at%2 == 0
		if matches || at >= near && at%stray == 0 {
			p.app = wanted
		}
		if matches || at >= near && at%stray == 1 {
			p.node = wanted
		}
		p.labels = map[string]string{"app": p.app, "node": p.node}
	}
}

// selectLabels all|namespace QUERIES: microseconds of a query for two labels in a namespace; with
// "all" by a look at everything, else by the namespace index and a look at what it names.
func selectLabels(d *driver, words []string) ([]float64, error) {
	if d.built == nil {
		d.world.label()
	}
	store, queries := d.store(), number(words[1])
	selector, err := labels.Parse("app=wanted,node=wanted")
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for range queries {
		found := []any{}
		if words[0] == "all" {
			err = cache.ListAll(store, selector, func(object any) {
				if object.(*pod).namespace == "wanted" {
					found = append(found, object)
				}
			})
		} else {
			err = cache.ListAllByNamespace(store, "wanted", selector, func(object any) {
				found = append(found, object)
			})
		}
		if err != nil {
			return nil, err
		}
		if len(found) != near/2 {
			return nil, fmt.Errorf("the selector found %d", len(found))
		}
	}
	return []float64{perCall(began, queries) / 1e3}, nil
}
