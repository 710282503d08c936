// Command client-go measures the real client-go for informant-bench. It reads one command a line
// and answers each with one line, a JSON array of figures, so that its rounds can be interleaved
// with ours. The first argument is how many pods the store holds.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// A command gets the words after its name and answers figures in the unit that its name implies.
type command func(d *driver, words []string) ([]float64, error)

var commands = map[string]command{
	"by-index":         byIndex,
	"memory":           memory,
	"beside":           besideWriter,
	"replace":          replaceAll,
	"write":            write,
	"fifo":             fifo,
	"queue-cycle":      queueCycle,
	"queue-workers":    queueWorkers,
	"informer":         informerEvents,
	"weigh":            weigh,
	"select":           selectLabels,
	"informer-latency": informerLatency,
	"informer-blocked": informerBlocked,
	"informer-grid":    informerGrid,
}

func main() {
	if len(os.Args) != 2 {
		fail("usage: client-go PODS")
	}
	count, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fail(err.Error())
	}
	d := newDriver(count)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	d.lines = lines
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		run, known := commands[words[0]]
		if !known {
			fail("no command " + words[0])
		}
		figures, err := run(d, words[1:])
		if err != nil {
			fail(err.Error())
		}
		if err := answers.Encode(figures); err != nil {
			fail(err.Error())
		}
	}
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, "client-go driver:", message)
	os.Exit(1)
}
