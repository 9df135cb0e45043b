package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// leakedFiles is how many descriptors the parent of every idle init forgets to
// close, so that "descriptors held" says what an init does about them.
const leakedFiles = 5

// IdleRow is an init that has nothing to do: at first nothing since its start,
// then nothing more after a first signal and a first orphan.
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
	// An init touches more of its pages once it has something to do.
	WorkedRSS          int64 `json:"rssAfterWorkKB"`
	WorkedPrivateDirty int64 `json:"privateDirtyAfterWorkKB"`
}

// idler is an init around a workload that waits.
type idler struct {
	*instance
	done *os.File // gets a byte when the orphan has been made
}

func startIdler(c contender, w workloads, leaked []*os.File) (*idler, error) {
	r, wr, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer wr.Close()
	in, err := start(c, []string{w.orphan}, spawnOptions{stdout: wr, leaked: leaked})
	if err != nil {
		r.Close()
		return nil, err
	}
	return &idler{in, r}, nil
}

func (in *idler) stop() {
	in.instance.stop()
	in.done.Close()
}

// work has the init forward a signal and reap an orphan.
func (in *idler) work() error {
	if err := unix.Kill(in.pid, unix.SIGUSR1); err != nil {
		return err
	}
	if err := in.done.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := io.ReadFull(in.done, make([]byte, 1)); err != nil {
		return fmt.Errorf("%s has not forwarded the signal: %w", in.name, err)
	}
	return waitFor(in.name+" to reap the orphan", func() bool {
		pids, err := children(in.pid)
		return err == nil && len(pids) == 1
	})
}

// settle is a while in which an ordinary runtime goes on working after its
// start, or after it had something to do.
const settle = 2 * time.Second

// measureIdle starts every init around a workload that waits, and looks at all
// of them after the same time; then again after a signal and an orphan.
func measureIdle(cs []contender, w workloads, watch time.Duration) ([]IdleRow, error) {
	leaked := make([]*os.File, leakedFiles)
	for i := range leaked {
		leaked[i] = devNull
	}
	var ins []*idler
	defer func() {
		for _, in := range ins {
			in.stop()
		}
	}()
	for _, c := range cs {
		if c.name == bareName {
			continue
		}
		in, err := startIdler(c, w, leaked)
		if err != nil {
			return nil, err
		}
		ins = append(ins, in)
	}
	for _, in := range ins {
		if err := in.waitForCommand(orphanName); err != nil {
			return nil, err
		}
		// It sleeps when it waits for its signal. Before it has blocked that, it would end by it.
		if err := waitFor(in.name+"'s workload to wait for its signal", func() bool {
			pids, err := children(in.pid)
			return err == nil && len(pids) == 1 && asleep(pids[0])
		}); err != nil {
			return nil, err
		}
	}
	time.Sleep(settle)
	rows, err := watchIdlers(ins, watch)
	if err != nil {
		return nil, err
	}
	if err := workIdlers(ins, rows); err != nil {
		return nil, err
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

// watchIdlers lets some time pass, and makes the rows.
func watchIdlers(ins []*idler, watch time.Duration) ([]IdleRow, error) {
	before := make([]int64, len(ins))
	for i, in := range ins {
		// Going to sleep after its start is no wake-up.
		err := waitFor(in.name+" to fall asleep", func() bool { return asleep(in.pid) })
		if err != nil {
			return nil, err
		}
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
		if rows[i], err = idleRow(in.instance); err != nil {
			return nil, err
		}
		rows[i].Wakeups = after - before[i]
	}
	return rows, nil
}

// workIdlers gives all of them the same work, and completes their rows.
func workIdlers(ins []*idler, rows []IdleRow) error {
	for _, in := range ins {
		if err := in.work(); err != nil {
			return err
		}
	}
	time.Sleep(settle)
	for i, in := range ins {
		worked, err := idleRow(in.instance)
		if err != nil {
			return err
		}
		rows[i].WorkedRSS, rows[i].WorkedPrivateDirty = worked.RSS, worked.PrivateDirty
	}
	return nil
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
