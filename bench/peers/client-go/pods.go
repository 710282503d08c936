package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	namespaceCount = 100
	nodeCount      = 1000
	appCount       = 300
)

// A pod is as slim as the pods of the other side. Embedding the (nil) interface makes it an object
// to client-go; of its methods only those below are ever called.
type pod struct {
	metav1.Object
	namespace, name string
	uid             types.UID
	node, app       string
	version         string
	// Only where labels are selected.
	labels map[string]string
	// When the change was sent, where a latency is measured.
	sent time.Time
}

func (p *pod) GetNamespace() string         { return p.namespace }
func (p *pod) GetName() string              { return p.name }
func (p *pod) GetUID() types.UID            { return p.uid }
func (p *pod) GetResourceVersion() string   { return p.version }
func (p *pod) GetLabels() map[string]string { return p.labels }

func (p *pod) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject is asked for by the interface; nothing on the way calls it.
func (p *pod) DeepCopyObject() runtime.Object {
	copied := *p
	return &copied
}

// A podList is what the informer's list call answers.
type podList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []*pod
}

func (l *podList) DeepCopyObject() runtime.Object {
	copied := *l
	return &copied
}

// A world is what the store holds, and where the next change comes from.
type world struct {
	pods              []*pod
	namespaces, nodes []string
	version           int
	random            *rand.Rand
}

func newWorld(count int) *world {
	w := &world{
		namespaces: texts(namespaceCount, "namespace-%03d"),
		nodes:      texts(nodeCount, "node-%04d.example"),
		version:    1_000_000,
		random:     rand.New(rand.NewPCG(39, 39)),
	}
	apps := texts(appCount, "app-%03d")
	for at := range count {
		app := w.random.IntN(appCount)
		hash := uint64(at) * 0x9e3779b97f4a7c15 >> 20
		w.pods = append(w.pods, &pod{
			namespace: w.namespaces[at%namespaceCount],
			name:      fmt.Sprintf("app-%03d-%011x-%05d", app, hash, w.random.IntN(100_000)),
			uid:       types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", w.random.Uint32(), at)),
			node:      w.nodes[(at*7919+at/nodeCount)%nodeCount],
			app:       apps[app],
		})
	}
	w.random.Shuffle(count, func(i, j int) { w.pods[i], w.pods[j] = w.pods[j], w.pods[i] })
	for _, p := range w.pods {
		p.version = w.next()
	}
	w.random.Shuffle(len(w.namespaces), func(i, j int) {
		w.namespaces[i], w.namespaces[j] = w.namespaces[j], w.namespaces[i]
	})
	w.random.Shuffle(len(w.nodes), func(i, j int) { w.nodes[i], w.nodes[j] = w.nodes[j], w.nodes[i] })
	return w
}

func texts(count int, format string) []string {
	texts := make([]string, count)
	for at := range texts {
		texts[at] = fmt.Sprintf(format, at)
	}
	return texts
}

func (w *world) next() string {
	w.version++
	return strconv.Itoa(w.version)
}

// modify makes a new version of a random pod; nothing but its version changes.
func (w *world) modify() *pod {
	return w.modifyAt(w.random.IntN(len(w.pods)))
}

func (w *world) modifyAt(at int) *pod {
	changed := *w.pods[at]
	changed.version = w.next()
	w.pods[at] = &changed
	return &changed
}
