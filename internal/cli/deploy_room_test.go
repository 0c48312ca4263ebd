package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

func TestOnlyALargeReplayOnASmallDiskIsRefused(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	n := func(v int64) *int64 { return &v }
	for name, c := range map[string]struct {
		offsets     int64
		disk, stage *int64
		free        int64
		want        bool
	}{
		"more than twice what is free": {2_000_000, n(5 * gib), n(4 * gib), 4 * gib, true},
		"an estimate may be wrong":     {2_000_000, n(4 * gib), n(4 * gib), 4 * gib, false},
		"a small job":                  {2_000_000, n(gib / 2), n(gib / 4), 0, false},
		"a short log":                  {999_999, n(5 * gib), n(4 * gib), 0, false},
		"no estimate":                  {2_000_000, nil, nil, 0, false},
	} {
		err := deployRoom().refusal(planReplay{Offsets: c.offsets, DiskBytes: c.disk, StagingBytes: c.stage, WALBytes: n(99 * gib)}, c.free)
		if (err != nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDeployLooksAtTheDiskBeforeItStages(t *testing.T) {
	t.Parallel()
	f := newFlow(t)
	brokers := strings.Split(f.config[3], ",")
	for p := range int32(4) {
		for i := range 8 {
			kafkatest.Produce(t, brokers, "pageviews", p, fmt.Sprintf(`{"user_id":"u","url":"/%d/%d","ts":"2026-01-01T10:05:00Z","duration_ms":5}`, p, i))
		}
	}
	o, a, err := parsed(t, newDeploy, append([]string{pageviews()}, f.config...)...)
	if err != nil {
		t.Fatal(err)
	}
	a.sys.Now = time.Now
	query, err := compile(t.Context(), o.file)
	if err != nil {
		t.Fatal(err)
	}
	cl, err := a.client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	staging := o.staging(t.Context(), query, "")
	small := roomRule{offsets: 32, least: 1, times: 2, within: time.Minute}
	for name, c := range map[string]struct {
		rule roomRule
		free func(string) (int64, error)
		want string
	}{
		"full":        {small, func(string) (int64, error) { return 100, nil }, "PostgreSQL's disk has 100 B free"},
		"room":        {small, func(string) (int64, error) { return 1 << 40, nil }, ""},
		"not seen":    {small, func(string) (int64, error) { return 0, errors.New("permission denied") }, ""},
		"a short log": {roomRule{offsets: 33, least: 1, times: 2, within: time.Minute}, func(string) (int64, error) { return 100, nil }, ""},
	} {
		a.sys.Free = c.free
		err := o.room(t.Context(), cl, query, staging, c.rule)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var r *job.Refusal
		if !errors.As(o.named(err), &r) || r.Code != job.ExitGap || !strings.Contains(r.Cause, c.want) ||
			!strings.Contains(r.Next, "kappactl deploy "+o.file+" --ignore-disk") {
			t.Errorf("%s: %+v", name, err)
		}
	}
	if status, err := cl.store.Jobs(t.Context()); err != nil || len(status) > 0 {
		t.Errorf("something was staged: %+v (%v)", status, err)
	}
}
