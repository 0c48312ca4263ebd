package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/estimate"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

func TestDeployLooksAtTheDiskBeforeItStages(t *testing.T) {
	t.Parallel()
	f := newFlow(t)
	brokers := strings.Split(f.config[3], ",")
	for p := range int32(4) {
		for i := range 8 {
			kafkatest.Produce(t, brokers, "pageviews", p,
				fmt.Sprintf(`{"user_id":"u","url":"/%d/%d","ts":"2026-01-01T10:05:00Z","duration_ms":5}`, p, i))
		}
	}
	o, a, err := parsed(t, newDeploy, append([]string{pageviews()}, f.config...)...)
	if err != nil {
		t.Fatal(err)
	}
	a.sys.Now = time.Now
	query, err := a.compile(t.Context(), o.file)
	if err != nil {
		t.Fatal(err)
	}
	cl, err := a.client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	staging := o.staging(t.Context(), query, "")
	small := estimate.Room{Offsets: 32, Least: 1, Times: 2, Within: time.Minute}
	for name, c := range map[string]struct {
		rule estimate.Room
		free func(string) (int64, error)
		want string
	}{
		"full":     {small, func(string) (int64, error) { return 100, nil }, "PostgreSQL's disk has 100 B free"},
		"room":     {small, func(string) (int64, error) { return 1 << 40, nil }, ""},
		"not seen": {small, func(string) (int64, error) { return 0, errors.New("permission denied") }, ""},
		"a short log": {
			estimate.Room{Offsets: 33, Least: 1, Times: 2, Within: time.Minute},
			func(string) (int64, error) { return 100, nil },
			"",
		},
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
			!strings.Contains(r.Next, "kappactl deploy "+o.file.String()+" --ignore-disk") {
			t.Errorf("%s: %+v", name, err)
		}
	}
	if status, err := cl.store.Jobs(t.Context()); err != nil || len(status) > 0 {
		t.Errorf("something was staged: %+v (%v)", status, err)
	}
}

// TestDeployRefusesAJobWhoseMergeIsWrong: what is merged is compared with the query run once, over a sample, before
// anything is staged.
func TestDeployRefusesAJobWhoseMergeIsWrong(t *testing.T) {
	t.Parallel()
	f := newFlow(t)
	brokers := strings.Split(f.config[3], ",")
	for i := range 40 {
		kafkatest.Produce(t, brokers, "pageviews", 0,
			fmt.Sprintf(`{"user_id":"u","url":"/a","ts":"2026-01-01T10:05:00Z","duration_ms":%d}`, i))
	}
	o, a, err := parsed(t, newDeploy, append([]string{pageviews()}, f.config...)...)
	if err != nil {
		t.Fatal(err)
	}
	a.sys.Now = time.Now
	c, err := a.compile(t.Context(), o.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.mergeable(t.Context(), c); err != nil {
		t.Errorf("a right job: %v", err)
	}
	for i, s := range c.query.Layout.States {
		c.query.Layout.States[i].Combine = `e."` + s.Name + `"`
	}
	var refused *job.Refusal
	if err := o.mergeable(t.Context(), c); !errors.As(err, &refused) || refused.Code != job.ExitChecks {
		t.Errorf("a wrong merge: %v", err)
	}
}

func TestTheFreeSpaceOfThisMachinesDiskIsKnown(t *testing.T) {
	if free, err := (System{}).free(t.TempDir()); err != nil || free <= 0 {
		t.Errorf("this disk has %d free (%v)", free, err)
	}
}
