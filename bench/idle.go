package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// leakedFiles is how many descriptors the parent of every idle init forgets to
// close, so that "descriptors held" says what an init does about them.
const leakedFiles = 5

// IdleRow is an init that has nothing to do.
type IdleRow struct {
	Init         string   `json:"init"`
	RSS          int64    `json:"rssKB"`
	PSS          int64    `json:"pssKB"`
	PrivateDirty int64    `json:"privateDirtyKB"`
	PrivateClean int64    `json:"privateCleanKB"`
	PageTables   int64    `json:"pageTablesKB"`
	Threads      int64    `json:"threads"`
	Wakeups      int64    `json:"wakeups"`
	Descriptors  int      `json:"descriptors"`
	RSSRatio     *float64 `json:"rssRatioToReference,omitempty"`
	DirtyRatio   *float64 `json:"privateDirtyRatioToReference,omitempty"`
}

// measureIdle starts every init around a sleep and looks at all of them after
// the same time.
func measureIdle(cs []contender, w workloads, watch time.Duration) ([]IdleRow, error) {
	leaked := make([]*os.File, leakedFiles)
	for i := range leaked {
		leaked[i] = devNull
	}
	var ins []*instance
	defer func() {
		for _, in := range ins {
			in.stop()
		}
	}()
	for _, c := range cs {
		if c.name == bareName {
			continue
		}
		in, err := start(c, []string{w.sleep, "infinity"}, spawnOptions{leaked: leaked})
		if err != nil {
			return nil, err
		}
		ins = append(ins, in)
	}
	for _, in := range ins {
		if err := in.waitForCommand("sleep"); err != nil {
			return nil, err
		}
	}
	// An ordinary runtime goes on working for a moment after its start.
	time.Sleep(2 * time.Second)
	before := make([]int64, len(ins))
	for i, in := range ins {
		var err error
		if before[i], err = wakeups(in.pid); err != nil {
			return nil, err
		}
	}
	time.Sleep(watch)
	rows := make([]IdleRow, len(ins))
	for i, in := range ins {
		after, err := wakeups(in.pid)
		if err != nil {
			return nil, err
		}
		if rows[i], err = idleRow(in); err != nil {
			return nil, err
		}
		rows[i].Wakeups = after - before[i]
	}
	var ref IdleRow
	for _, r := range rows {
		if r.Init == referenceName {
			ref = r
		}
	}
	for i := range rows {
		rows[i].RSSRatio = over(float64(rows[i].RSS), float64(ref.RSS))
		rows[i].DirtyRatio = over(float64(rows[i].PrivateDirty), float64(ref.PrivateDirty))
	}
	return rows, nil
}

func idleRow(in *instance) (IdleRow, error) {
	mem, err := fields(procPath(in.pid, "smaps_rollup"))
	if err != nil {
		return IdleRow{}, fmt.Errorf("memory of %s: %w", in.name, err)
	}
	status, err := fields(procPath(in.pid, "status"))
	if err != nil {
		return IdleRow{}, err
	}
	fds, err := filepath.Glob(procPath(in.pid, "fd/*"))
	if err != nil {
		return IdleRow{}, err
	}
	return IdleRow{
		Init:         in.name,
		RSS:          mem["Rss"],
		PSS:          mem["Pss"],
		PrivateDirty: mem["Private_Dirty"],
		PrivateClean: mem["Private_Clean"],
		PageTables:   status["VmPTE"],
		Threads:      status["Threads"],
		Descriptors:  len(fds),
	}, nil
}

// FleetRow is what one of many instances on one machine costs.
type FleetRow struct {
	Init         string   `json:"init"`
	Instances    int      `json:"instances"`
	PSS          float64  `json:"pssKBEach"`
	PrivateDirty float64  `json:"privateDirtyKBEach"`
	PageTables   float64  `json:"pageTablesKBEach"`
	PSSRatio     *float64 `json:"pssRatioToReference,omitempty"`
}

// measureFleet runs n instances of every init at once, each in a namespace of
// its own, as n containers on a node would. Only the inits are counted.
func measureFleet(cs []contender, w workloads, n int) ([]FleetRow, error) {
	var rows []FleetRow
	for _, c := range cs {
		if c.name == bareName {
			continue
		}
		row, err := fleetRow(c, w, n)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	var ref float64
	for _, r := range rows {
		if r.Init == referenceName {
			ref = r.PSS
		}
	}
	for i := range rows {
		rows[i].PSSRatio = over(rows[i].PSS, ref)
	}
	return rows, nil
}

func fleetRow(c contender, w workloads, n int) (FleetRow, error) {
	var ins []*instance
	defer func() {
		for _, in := range ins {
			in.stop()
		}
	}()
	for range n {
		in, err := start(c, []string{w.sleep, "infinity"}, spawnOptions{})
		if err != nil {
			return FleetRow{}, err
		}
		ins = append(ins, in)
	}
	for _, in := range ins {
		if err := in.waitForCommand("sleep"); err != nil {
			return FleetRow{}, err
		}
	}
	time.Sleep(500 * time.Millisecond)
	row := FleetRow{Init: c.name, Instances: n}
	for _, in := range ins {
		r, err := idleRow(in)
		if err != nil {
			return FleetRow{}, err
		}
		row.PSS += float64(r.PSS) / float64(n)
		row.PrivateDirty += float64(r.PrivateDirty) / float64(n)
		row.PageTables += float64(r.PageTables) / float64(n)
	}
	return row, nil
}
