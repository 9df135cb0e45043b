package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"
)

// ReapingRow is an init under a storm of orphans.
type ReapingRow struct {
	Init        string   `json:"init"`
	Orphans     int      `json:"orphans"`
	PerSecond   float64  `json:"orphansPerSecond"`
	PeakZombies int      `json:"peakZombies"`
	CPU         float64  `json:"cpuMicrosecondsPerOrphan"`
	CPURatio    *float64 `json:"cpuRatioToReference,omitempty"`
}

// measureReaping lets every init reap the same number of orphans, several
// times in a random order, and keeps the median of each.
func measureReaping(cs []contender, w workloads, orphans, rounds int) ([]ReapingRow, error) {
	type samples struct{ rate, peak, cpu []float64 }
	got := map[string]*samples{}
	for range rounds {
		for _, i := range rand.Perm(len(cs)) {
			c := cs[i]
			if c.name == bareName {
				continue
			}
			rate, peak, cpu, err := reapOnce(c, w, orphans)
			if err != nil {
				return nil, fmt.Errorf("%s reaping %d orphans: %w", c.name, orphans, err)
			}
			if got[c.name] == nil {
				got[c.name] = &samples{}
			}
			g := got[c.name]
			g.rate, g.peak, g.cpu = append(g.rate, rate), append(g.peak, float64(peak)), append(g.cpu, cpu)
		}
	}
	var rows []ReapingRow
	for _, c := range cs {
		g := got[c.name]
		if g == nil {
			continue
		}
		cpu := median(g.cpu)
		rows = append(rows, ReapingRow{
			Init:        c.name,
			Orphans:     orphans,
			PerSecond:   median(g.rate),
			PeakZombies: int(median(g.peak)),
			CPU:         cpu,
			CPURatio:    over(cpu, median(got[referenceName].cpu)),
		})
	}
	return rows, nil
}

func reapOnce(c contender, w workloads, orphans int) (rate float64, peak int, cpu float64, err error) {
	r, wr, err := os.Pipe()
	if err != nil {
		return 0, 0, 0, err
	}
	defer r.Close()
	begin := monotonic()
	in, err := start(c, []string{w.storm}, spawnOptions{stdout: wr})
	wr.Close()
	if err != nil {
		return 0, 0, 0, err
	}
	defer in.stop()

	made := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(r, make([]byte, 1))
		made <- err
	}()
	deadline := time.After(5 * time.Minute)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	finished := false
	for {
		select {
		case err := <-made:
			if err != nil {
				return 0, 0, 0, fmt.Errorf("the storm ended early: %w", err)
			}
			finished = true
		case <-deadline:
			return 0, 0, 0, fmt.Errorf("not done in five minutes")
		case <-tick.C:
		}
		// All children but the workload are orphans that wait for the init.
		pids, err := children(in.pid)
		if err != nil {
			return 0, 0, 0, err
		}
		peak = max(peak, len(pids)-1)
		if finished && len(pids) == 1 {
			break
		}
	}
	took := monotonic() - begin
	used, err := cpuTime(in.pid)
	if err != nil {
		return 0, 0, 0, err
	}
	n := float64(orphans)
	return n / took.Seconds(), peak, float64(used.Nanoseconds()) / 1e3 / n, nil
}
