package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// weigh keep|strip PODS UPDATES, followed by PODS + UPDATES lines of JSON: bytes a pod that are live
// after the list and after the updates, the peak (which Go does not tell: the first figure again), and
// resident.
func weigh(d *driver, words []string) ([]float64, error) {
	pods, updates := number(words[1]), number(words[2])
	strip := words[0] == "strip"
	next := func() (*corev1.Pod, error) {
		if !d.lines.Scan() {
			return nil, fmt.Errorf("a pod is missing")
		}
		p := &corev1.Pod{}
		if err := json.Unmarshal(d.lines.Bytes(), p); err != nil {
			return nil, err
		}
		if strip {
			p.ManagedFields = nil
		}
		return p, nil
	}
	before := liveBytes()
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	list := make([]any, 0, pods)
	for range pods {
		p, err := next()
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	if err := store.Replace(list, "1"); err != nil {
		return nil, err
	}
	list = nil
	first := liveBytes() - before
	for range updates {
		p, err := next()
		if err != nil {
			return nil, err
		}
		if err := store.Update(p); err != nil {
			return nil, err
		}
	}
	// The resident set as it is while the program runs, before these figures force collections.
	resident := residentBytes()
	after := liveBytes() - before
	runtime.KeepAlive(store)
	each := func(bytes int64) float64 { return float64(bytes) / float64(pods) }
	return []float64{each(first), each(after), each(first), each(resident)}, nil
}

func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	words := strings.Fields(string(text))
	pages, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
