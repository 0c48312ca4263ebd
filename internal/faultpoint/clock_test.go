package faultpoint

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestTheClockStepsWithoutItsMonotonicReading: intervals of a process stay right when the system's clock is set.
func TestTheClockStepsWithoutItsMonotonicReading(t *testing.T) {
	file := filepath.Join(t.TempDir(), "clock")
	t.Setenv(Clock, file)
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		if err := os.WriteFile(file, []byte(by.String()+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		now := Now()
		if between := now.Sub(before); between < 0 || between > time.Minute {
			t.Errorf("%s: %s went by since a moment ago", by, between)
		}
		want := time.Duration(0)
		if Enabled {
			want = by
		}
		if off := now.Round(0).Sub(before.Round(0)).Round(time.Minute); off != want {
			t.Errorf("the wall clock is off by %s, want %s", off, want)
		}
	}
}
