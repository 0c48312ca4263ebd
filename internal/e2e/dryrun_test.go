package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// TestPlanDryRunAndDeployAgree takes files that deploy refuses, in each state of a job, and compares code and reason of `plan`,
// `deploy --dry-run` and `deploy`.
func TestPlanDryRunAndDeployAgree(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers)
	topic := kafkatest.Name("clicks")
	kafkatest.Topic(t, brokers, topic, 1, nil)
	kafkatest.ProduceMany(t, brokers, 200, func(i int) *kgo.Record {
		return &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, `{"url":"/%d","ms":%d}`, i%20, i)}
	})
	w.serve()
	if _, err := w.pool.Exec(t.Context(), `CREATE TABLE public.taken__v1 (n int)`); err != nil {
		t.Fatal(err)
	}
	base := fmt.Sprintf(lookedAtJob, topic, "")
	file := func(name string, change ...string) string {
		return w.file(name+".yaml", strings.NewReplacer(change...).Replace(base))
	}
	agree := func(what, path string, args ...string) (code int) {
		t.Helper()
		dry := w.run(append([]string{"deploy", path, "--dry-run"}, args...)...)
		plan := w.run("plan", path, "--quick")
		real := w.run(append([]string{"deploy", path, "--timeout", "2m"}, args...)...)
		if real.code != dry.code || len(args) == 0 && real.code != plan.code {
			t.Errorf("%s: deploy ends with %d, its dry run with %d, plan with %d\n%s\n%s\n%s%s", what, real.code, dry.code, plan.code, real.stderr, dry.stderr, plan.stdout, plan.stderr)
		}
		if reason, _, _ := strings.Cut(real.stderr, "\nnext:"); real.code != 0 && !strings.Contains(dry.stderr, reason[strings.LastIndex(reason, "error:"):]) {
			t.Errorf("%s: deploy says\n%s\nits dry run\n%s", what, real.stderr, dry.stderr)
		}
		return real.code
	}
	for _, c := range []struct {
		what, path string
		code       int
	}{
		{"a schema that does not exist", file("schema", "public.clicks", "nowhere.clicks"), 2},
		{"a role that does not exist", file("role", "view: public.clicks}", "view: public.clicks, grant: {select: [nobody_of_that_name]}}"), 2},
		{"a table of another job's name", file("table", "job: clicks", "job: taken"), 6},
		{"a relation that is not ours", file("relation", "public.clicks", "public.taken__v1"), 6},
	} {
		if got := agree(c.what, c.path); got != c.code {
			t.Errorf("%s: exit code %d, want %d", c.what, got, c.code)
		}
	}
	v1 := file("v1")
	agree("a first version", v1)
	agree("what is live already", v1)
	agree("another cluster's view", file("other", "job: clicks", "job: clicks2"))
	v2 := w.file("v2.yaml", fmt.Sprintf(lookedAtJob, topic, "WHERE ms < 100"))
	agree("a second version", v2)
	agree("a candidate that waits", v2)
	w.ok("promote", "clicks", "v2")
	agree("what is standby", v1)
	w.ok("rollback", "clicks")
	if got := agree("what was rolled back", v2); got != 6 {
		t.Errorf("exit code %d", got)
	}
	w.ok("retire", "clicks", "v2", "--now", "--yes")
	agree("what was retired after a rollback", v2, "--again")
}

// TestPlanWarnsOfBadRecordsExactlyWhenDeployStops goes through shares of bad records of a small topic on both sides of
// what on_error allows.
func TestPlanWarnsOfBadRecordsExactlyWhenDeployStops(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers)
	topic := kafkatest.Name("few")
	kafkatest.Topic(t, brokers, topic, 1, nil)
	kafkatest.Produce(t, brokers, topic, 0, `{"url":"/a","ms":1}`, "not json", `{"url":"/b","ms":2}`)
	w.serve()
	const warning = "about 1 record of 3 cannot be processed, more than on_error allows"
	for max, code := range map[string]int{"33%": 8, "34%": 0} {
		name := "few_" + strings.TrimSuffix(max, "%")
		path := w.file(name+".yaml", strings.NewReplacer("job: clicks", "job: "+name, "public.clicks", "public."+name, "max: 50%", "max: "+max).
			Replace(fmt.Sprintf(lookedAtJob, topic, "")))
		if plan := w.ok("plan", path); strings.Contains(plan, warning) != (code != 0) {
			t.Errorf("on_error %s: plan says\n%s", max, plan)
		}
		w.code(code, "deploy", path, "--timeout", "5m")
	}
}
