package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// LatencyRow is the time from kill(2) on the init to the waking up of the
// workload.
type LatencyRow struct {
	Init    string   `json:"init"`
	Storm   bool     `json:"storm"`
	Samples int      `json:"samples"`
	Median  float64  `json:"medianMicroseconds"`
	P99     float64  `json:"p99Microseconds"`
	Ratio   *float64 `json:"medianRatioToReference,omitempty"`
}

// target is an init whose workload answers signals with the time.
type target struct {
	*instance
	stamps *os.File
}

func startTarget(c contender, program string) (*target, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	in, err := start(c, []string{program}, spawnOptions{stdout: w})
	if err != nil {
		r.Close()
		return nil, err
	}
	t := &target{instance: in, stamps: r}
	if _, err := t.stamp(); err != nil { // the workload is ready
		t.stop()
		return nil, err
	}
	return t, nil
}

func (t *target) stop() {
	t.instance.stop()
	t.stamps.Close()
}

// stamp reads the next time that the workload writes: a struct timespec.
func (t *target) stamp() (time.Duration, error) {
	var b [16]byte
	if err := t.stamps.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	if _, err := io.ReadFull(t.stamps, b[:]); err != nil {
		return 0, fmt.Errorf("no answer from the workload of %s: %w", t.name, err)
	}
	ne := binary.NativeEndian
	return time.Duration(ne.Uint64(b[:8]))*time.Second + time.Duration(ne.Uint64(b[8:])), nil
}

// ask sends one signal to the init.
func (t *target) ask() (float64, error) {
	begin := monotonic()
	if err := unix.Kill(t.pid, unix.SIGUSR1); err != nil {
		return 0, err
	}
	at, err := t.stamp()
	return float64((at - begin).Nanoseconds()) / 1e3, err
}

func measureLatency(cs []contender, w workloads, samples int) ([]LatencyRow, error) {
	idle, err := idleLatency(cs, w, samples)
	if err != nil {
		return nil, err
	}
	storm, err := stormLatency(cs, w, samples)
	if err != nil {
		return nil, err
	}
	return append(latencyRows(cs, idle, false), latencyRows(cs, storm, true)...), nil
}

// idleLatency has all inits up at once and asks them in turn.
func idleLatency(cs []contender, w workloads, samples int) (map[string][]float64, error) {
	var ts []*target
	defer func() {
		for _, t := range ts {
			t.stop()
		}
	}()
	for _, c := range cs {
		t, err := startTarget(c, w.stamp)
		if err != nil {
			return nil, err
		}
		ts = append(ts, t)
	}
	got := map[string][]float64{}
	for range samples {
		for _, i := range rand.Perm(len(ts)) {
			v, err := ts[i].ask()
			if err != nil {
				return nil, err
			}
			got[ts[i].name] = append(got[ts[i].name], v)
			time.Sleep(100 * time.Microsecond) // let it fall asleep again
		}
	}
	return got, nil
}

// stormLatency asks while the namespace is full of orphans to reap. Two storms
// at once would compete, hence short turns. The bare command is left out: as
// PID 1 it would have to reap.
func stormLatency(cs []contender, w workloads, samples int) (map[string][]float64, error) {
	const turn = 100
	got := map[string][]float64{}
	for done := 0; done < samples; done += turn {
		for _, i := range rand.Perm(len(cs)) {
			c := cs[i]
			if c.name == bareName {
				continue
			}
			vs, err := stormTurn(c, w, min(turn, samples-done))
			if err != nil {
				return nil, err
			}
			got[c.name] = append(got[c.name], vs...)
		}
	}
	return got, nil
}

func stormTurn(c contender, w workloads, samples int) ([]float64, error) {
	t, err := startTarget(c, w.stampStorm)
	if err != nil {
		return nil, err
	}
	defer t.stop()
	var vs []float64
	for range samples {
		v, err := t.ask()
		if err != nil {
			return nil, err
		}
		vs = append(vs, v)
		time.Sleep(500 * time.Microsecond)
	}
	return vs, nil
}

func latencyRows(cs []contender, got map[string][]float64, storm bool) []LatencyRow {
	var rows []LatencyRow
	for _, c := range cs {
		vs := got[c.name]
		if len(vs) == 0 {
			continue
		}
		row := LatencyRow{Init: c.name, Storm: storm, Samples: len(vs), Median: median(vs), P99: quantile(vs, 0.99)}
		if c.name != bareName {
			row.Ratio = over(row.Median, median(got[referenceName]))
		}
		rows = append(rows, row)
	}
	return rows
}
