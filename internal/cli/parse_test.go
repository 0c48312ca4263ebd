package cli

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/job"
)

// parsed runs a command line against a command whose run function only keeps its options.
func parsed[T any](t *testing.T, make func(*app, func(context.Context, T) error) *cobra.Command, args ...string) (T, *app, error) {
	t.Helper()
	sys, _, _ := fakeSystem(nil)
	a := &app{sys: sys, stop: func() {}}
	var got T
	root := newRoot(a)
	cmd := make(a, func(_ context.Context, o T) error {
		got = o
		return nil
	})
	for _, old := range root.Commands() {
		if old.Name() == cmd.Name() {
			root.RemoveCommand(old)
		}
	}
	root.AddCommand(cmd)
	root.SetArgs(append([]string{cmd.Name()}, args...))
	err := root.ExecuteContext(t.Context())
	a.stop()
	return got, a, err
}

func expect[T any](t *testing.T, make func(*app, func(context.Context, T) error) *cobra.Command, want T, args ...string) {
	t.Helper()
	got, _, err := parsed(t, make, args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	opts := cmp.Options{cmp.Exporter(func(reflect.Type) bool { return true }), cmpopts.IgnoreTypes(&app{})}
	if diff := cmp.Diff(want, got, opts); diff != "" {
		t.Errorf("%v: %s", args, diff)
	}
}

func at(name string, number int) target {
	n := job.Number(number)
	return target{Job: job.Name(name), Number: &n}
}

func TestDeployFlags(t *testing.T) {
	expect(t, newDeploy, deployOptions{file: jobFile{path: "a.yaml"}}, "a.yaml")
	expect(t, newDeploy, deployOptions{
		file: jobFile{path: "a.yaml"}, until: "caught_up", promote: job.PromoteAuto, again: true, allowColumnChange: true, acceptShorterHistory: "t1", ignoreDisk: true,
		dryRun: true, detailedExitCode: true, detach: true, waitAgent: duration{value: 2 * time.Minute, set: true},
	}, "a.yaml", "--until", "caught_up", "--promote", "auto", "--again", "--allow-column-change", "--accept-shorter-history=t1", "--ignore-disk", "--dry-run",
		"--detailed-exitcode", "--detach", "--wait-agent", "2m")
	for _, wrong := range [][]string{
		{"a.yaml", "--until", "ready"},
		{"a.yaml", "--promote", "yes"},
		{"a.yaml", "--until", "live", "--promote", "manual"},
		{"a.yaml", "--until", "settled", "--promote", "manual"},
		{"a.yaml", "-"},
		{"a.yaml", "--wait-agent", "-1s"},
	} {
		if _, _, err := parsed(t, newDeploy, wrong...); err == nil {
			t.Errorf("deploy %v was accepted", wrong)
		}
	}
}

func TestActFlags(t *testing.T) {
	expect(t, newPromote, promoteOptions{
		actOptions:      actOptions{target: at("pageviews", 3), dryRun: true, waitAgent: duration{value: time.Minute, set: true}},
		ignoreSnapshots: true, liveIsDown: true,
	}, "pageviews", "v3", "--ignore-snapshots", "--live-is-down", "--dry-run", "--wait-agent", "1m")
	expect(t, newPromote, promoteOptions{actOptions: actOptions{target: at("pageviews", 3)}}, "pageviews", "3")
	expect(t, newPromote, promoteOptions{actOptions: actOptions{target: at("pageviews", 3)}}, "pageviews/v3")
	expect(t, newPromote, promoteOptions{actOptions: actOptions{target: target{Job: "pageviews"}}}, "pageviews")
	expect(t, newRollback, rollbackOptions{actOptions: actOptions{target: at("pageviews", 1)}, stale: true, ignoreSnapshots: true}, "pageviews", "v1", "--stale", "--ignore-snapshots")
	expect(t, newAbort, actOptions{target: target{Job: "a"}, dryRun: true}, "a", "--dry-run")
	expect(t, newPause, actOptions{target: at("a", 2)}, "a", "v2")
	expect(t, newResume, resumeOptions{actOptions: actOptions{target: at("a", 2), dryRun: true}}, "a", "v2", "--dry-run")
	one := at("a", 2)
	expect(t, newRetire, retireOptions{removeOptions: removeOptions{yes: true}, target: &one, now: true}, "a", "v2", "--now", "-y")
	expect(t, newRetire, retireOptions{removeOptions: removeOptions{dryRun: true}, allExpired: true}, "--all-expired", "--dry-run")
	if _, _, err := parsed(t, newRetire, "a", "v2", "--all-expired"); err == nil {
		t.Error("retire --all-expired took a version")
	}
}

func TestAdoptFlags(t *testing.T) {
	expect(t, newAdopt, adoptOptions{job: "a", view: job.ViewName{Schema: "public", Name: "t"}, leaveDependants: true}, "a", "--view", "t", "--leave-dependants")
	expect(t, newAdopt, adoptOptions{job: "a", view: job.ViewName{Schema: "My Schema", Name: "t"}, dryRun: true}, "a", "--view", `"My Schema".t`, "--dry-run")
	for _, wrong := range [][]string{{"a"}, {"a", "--view", "A b"}, {"a/v1", "--view", "t"}} {
		if _, _, err := parsed(t, newAdopt, wrong...); err == nil {
			t.Errorf("adopt took %v", wrong)
		}
	}
}

func TestDropFlags(t *testing.T) {
	expect(t, newDrop, dropOptions{removeOptions: removeOptions{yes: true}, job: "a", keepView: true}, "a", "--keep-view", "-y")
	expect(t, newDrop, dropOptions{removeOptions: removeOptions{dryRun: true}, job: "a"}, "a", "--dry-run")
	if _, _, err := parsed(t, newDrop, "a/v2"); err == nil {
		t.Error("drop took a version")
	}
}

func TestLookFlags(t *testing.T) {
	expect(t, newWait, waitOptions{target: at("a", 1), goal: "settled"}, "a", "v1", "--for", "settled")
	expect(t, newStatus, statusOptions{}, []string{}...)
	one := at("a", 2)
	expect(t, newStatus, statusOptions{target: &one, exitCode: true}, "a", "2", "--exit-code")
	expect(t, newVerify, verifyOptions{target: target{Job: "a"}, fromLogStart: true}, "a", "--from-log-start")
	expect(t, newCheck, checkOptions{file: jobFile{path: "x"}}, "x")
	expect(t, newInit, initOptions{print: true}, "--print")
	if _, _, err := parsed(t, newStatus, "--exit-code"); err == nil {
		t.Error("status --exit-code needs a job")
	}
}

func TestStackFlags(t *testing.T) {
	expect(t, newDev, devOptions{data: "d", postgresBin: "/pg", http: "127.0.0.1:1"}, "--data", "d", "--postgres-bin", "/pg", "--http", "127.0.0.1:1")
	expect(t, newDemo, demoOptions{data: "d"}, "--data", "d")
	expect(t, newDevLoad, devLoadOptions{file: "f.csv", topic: "t", partitions: 4, key: "k", limit: 10, rate: rate{perSecond: 5000}},
		"f.csv", "--topic", "t", "--partitions", "4", "--key", "k", "--limit", "10", "--rate", "5000/s")
	for _, wrong := range [][]string{
		{"f"},
		{"f", "--topic", "t", "--rate", "0"},
		{"f", "--topic", "t", "--rate", "fast"},
		{"f", "--topic", "t", "--limit", "-1"},
		{"f", "--topic", "t", "--partitions", "-1"},
	} {
		if _, _, err := parsed(t, newDevLoad, wrong...); err == nil {
			t.Errorf("dev load %v was accepted", wrong)
		}
	}
}

func TestSettingsFlagsReachTheSettings(t *testing.T) {
	_, a, err := parsed(t, newServe, "--brokers", "h:1,h:2", "--dsn", "host=h", "--replays", "3", "--http", "127.0.0.1:0", "--log", "json")
	if err != nil {
		t.Fatal(err)
	}
	s, err := config.Load(a.flags.given, config.Env{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	got := []any{s.Brokers, string(s.DSN), s.Agent.Replays, s.HTTP, s.Agent.Log}
	if diff := cmp.Diff([]any{[]string{"h:1", "h:2"}, "host=h", 3, "127.0.0.1:0", "json"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestVariablesGiveOutputAndTimeout(t *testing.T) {
	begun := func(env map[string]string, args ...string) (*app, *cobra.Command, error) {
		t.Helper()
		sys, _, _ := fakeSystem(env)
		a := &app{sys: sys, stop: func() {}}
		root := newRoot(a)
		cmd, rest, err := root.Find(args)
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.ParseFlags(rest); err != nil {
			t.Fatal(err)
		}
		cmd.SetContext(t.Context())
		err = a.begin(cmd, nil)
		t.Cleanup(a.stop)
		return a, cmd, err
	}
	env := map[string]string{"KAPPACTL_OUTPUT": "json", "KAPPACTL_TIMEOUT": "2h"}
	a, deploy, err := begun(env, "deploy")
	if end, limited := deploy.Context().Deadline(); err != nil || !limited || time.Until(end) < time.Hour || a.flags.output.value != "json" {
		t.Errorf("deploy: deadline %v, output %s, %v", end, a.flags.output.value, err)
	}
	a, status, err := begun(env, "status", "-o", "csv", "--timeout", "1m")
	if end, _ := status.Context().Deadline(); err != nil || time.Until(end) > time.Minute || a.flags.output.value != "csv" {
		t.Errorf("flags do not override the variables: deadline %v, output %s, %v", end, a.flags.output.value, err)
	}
	for _, name := range []string{"serve", "dev", "watch"} {
		_, cmd, err := begun(env, name)
		if _, limited := cmd.Context().Deadline(); limited || err != nil {
			t.Errorf("KAPPACTL_TIMEOUT ends %s (%v)", name, err)
		}
	}
	for name, text := range map[string]string{"KAPPACTL_OUTPUT": "xml", "KAPPACTL_TIMEOUT": "soon"} {
		_, _, err := begun(map[string]string{name: text}, "status")
		var wrong *usageError
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Cause, name+`: "`+text+`": want`) {
			t.Errorf("%s=%s: %v", name, text, err)
		}
	}
}

func TestTimeoutIsOfTheCommandUnlessGiven(t *testing.T) {
	left := func(args ...string) time.Duration {
		t.Helper()
		sys, _, _ := fakeSystem(nil)
		a := &app{sys: sys, stop: func() {}}
		root := newRoot(a)
		cmd, rest, err := root.Find(args)
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.ParseFlags(rest); err != nil {
			t.Fatal(err)
		}
		cmd.SetContext(t.Context())
		if err := a.begin(cmd, nil); err != nil {
			t.Fatal(err)
		}
		defer a.stop()
		deadline, ok := cmd.Context().Deadline()
		if !ok {
			return 0
		}
		return time.Until(deadline).Round(time.Second)
	}
	for _, c := range []struct {
		args []string
		want time.Duration
	}{
		{[]string{"status"}, 30 * time.Second},
		{[]string{"promote"}, 90 * time.Second},
		{[]string{"deploy"}, 0},
		{[]string{"wait"}, 0},
		{[]string{"deploy", "--timeout", "1d"}, 24 * time.Hour},
		{[]string{"status", "--timeout", "0"}, 0},
	} {
		if got := left(c.args...); got != c.want {
			t.Errorf("%v: %s, want %s", c.args, got, c.want)
		}
	}
}
