package main

import (
	"os/exec"
	"testing"
	"time"
)

// An init is looked at before and after its first signal and its first orphan.
func TestMeasureIdle(t *testing.T) {
	reference, err := exec.LookPath(referenceName)
	if err != nil {
		t.Skipf("an init is needed (apt: tini): %v", err)
	}
	c := contender{name: referenceName, path: reference, asPID1: []string{"--"}}
	rows, err := measureIdle([]contender{{name: bareName}, c}, programs(t, 1), 50*time.Millisecond)
	if err != nil {
		skipWithoutNamespaces(t, err)
		t.Fatal(err)
	}
	if len(rows) != 1 {
		t.Fatalf("%d rows for one init: %+v", len(rows), rows)
	}
	x := rows[0]
	if x.RSS <= 0 || x.WorkedRSS <= 0 || x.PrivateDirty <= 0 || x.WorkedPrivateDirty <= 0 {
		t.Errorf("memory before and after work: %+v", x)
	}
	if x.Threads != 1 || x.Descriptors < 3+leakedFiles {
		t.Errorf("threads and descriptors: %+v", x)
	}
}
