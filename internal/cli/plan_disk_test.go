package cli

import (
	"errors"
	"strings"
	"testing"
)

func TestPlanWarnsWhenTheDiskIsTooSmall(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	for name, c := range map[string]struct {
		free int64
		err  error
		why  string
		want string
	}{
		"room":                {free: 1000, want: ""},
		"close":               {free: 740, want: "has 740 B free and the replay needs up to 600 B"},
		"too small":           {free: 500, want: "make room before deploy"},
		"another machine":     {why: "PostgreSQL runs on another machine"},
		"a folder out of use": {err: errors.New("permission denied")},
	} {
		r := planReplay{DiskBytes: n(300), StagingBytes: n(100), WALBytes: n(200)}
		got := strings.Join(r.fits("/data", c.why, func(string) (int64, error) { return c.free, c.err }), "")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
		if unknown := c.why != "" || c.err != nil; unknown != (r.DiskUnknown != "") || unknown == (r.DiskFree != nil) {
			t.Errorf("%s: free %v, unknown %q", name, r.DiskFree, r.DiskUnknown)
		}
	}
	if free, err := freeBytes(t.TempDir()); err != nil || free <= 0 {
		t.Errorf("this disk has %d free (%v)", free, err)
	}
}
