package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// lines is an output stream that can be waited on.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
	on  chan struct{} // gets a token at each write
}

func newLines() *lines { return &lines{on: make(chan struct{}, 1)} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.on <- struct{}{}:
	default:
	}
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// await waits until the stream holds text.
func (l *lines) await(t *testing.T, text string) {
	t.Helper()
	late := time.After(3 * time.Minute)
	for !strings.Contains(l.String(), text) {
		select {
		case <-l.on:
		case <-late:
			t.Fatalf("no %q in %q", text, l.String())
		}
	}
}

// flow is a command that runs while the test plays the agent.
type flow struct {
	t      *testing.T
	pool   *pg.Pool
	out    *lines
	errs   *lines
	stop   context.CancelCauseFunc
	ended  chan job.ExitCode
	config []string

	brokers []string
}

func newFlow(t *testing.T) *flow {
	t.Helper()
	pool, dsn := pgtest.New(t)
	brokers := kafkatest.Fake(t)
	kafkatest.CreateTopic(t, brokers, "pageviews", 4, nil)
	f := &flow{t: t, pool: pool, brokers: brokers, config: []string{"--dsn", dsn, "--brokers", strings.Join(brokers, ",")}}
	f.exec(`INSERT INTO kappactl.agent (id, host, pid, release, capacity, dialects, heartbeat_at)
		VALUES ('test', 'test', 1, 'test', 1, '{1}', clock_timestamp() + interval '1 hour')`)
	return f
}

func (f *flow) exec(sql string) {
	f.t.Helper()
	if _, err := f.pool.Exec(f.t.Context(), sql); err != nil {
		f.t.Fatal(err)
	}
}

// eventually runs a statement until it changes a row.
func (f *flow) eventually(sql string) {
	f.t.Helper()
	kafkatest.Until(f.t, "a row for "+sql, func() bool {
		tag, err := f.pool.Exec(f.t.Context(), sql)
		return err == nil && tag.RowsAffected() > 0
	})
}

// start runs a command beside the test.
func (f *flow) start(args ...string) {
	f.t.Helper()
	f.out, f.errs, f.ended = newLines(), newLines(), make(chan job.ExitCode, 1)
	ctx, stop := context.WithCancelCause(context.Background())
	f.stop = stop
	sys, _, _ := fakeSystem(nil)
	sys.Out, sys.Err, sys.Now = f.out, f.errs, time.Now
	go func() { f.ended <- Run(ctx, sys, append(args, f.config...)) }()
}

// ends waits for the command and checks its code.
func (f *flow) ends(want job.ExitCode) {
	f.t.Helper()
	select {
	case code := <-f.ended:
		if code != want {
			f.t.Fatalf("exit %d, want %d\nstdout: %s\nstderr: %s", code, want, f.out, f.errs)
		}
	case <-time.After(3 * time.Minute):
		f.t.Fatalf("the command did not end\nstderr: %s", f.errs)
	}
}

func pageviews() string { return filepath.Join("..", "..", "examples", "pageviews.yaml") }

func TestInterruptEndsTheCommandAndNotTheDeployment(t *testing.T) {
	t.Parallel()
	f := newFlow(t)
	f.start("deploy", pageviews())
	f.errs.await(t, "staged as deployment 1")
	f.errs.await(t, "pageviews v1 staged")
	f.stop(errInterrupted)
	f.ends(job.ExitInterrupted)
	if want := "error: interrupted\nnext: kappactl wait pageviews v1 --for live   # the deployment goes on\n"; !strings.HasSuffix(f.errs.String(), want) {
		t.Errorf("stderr: %s", f.errs)
	}
	if f.out.String() != "" {
		t.Errorf("stdout: %s", f.out)
	}
	f.start("wait", "pageviews", "--for", "live")
	f.errs.await(t, "pageviews v1 staged")
	f.exec(`UPDATE kappactl.version SET phase = 'live', verdict = 'ready', reason = '{}'`)
	f.exec(`UPDATE kappactl.deployment SET state = 'settled', promoted_at = clock_timestamp(), ended_at = clock_timestamp()`)
	f.ends(job.ExitOK)
	if !strings.HasPrefix(f.out.String(), "pageviews v1 is live: ") {
		t.Errorf("stdout: %s", f.out)
	}
}

func TestWaitEndsSoonWithTheCauseWhenTheVersionFails(t *testing.T) {
	t.Parallel()
	f := newFlow(t)
	f.start("deploy", pageviews(), "--detach", "--quiet")
	f.ends(job.ExitOK)
	f.start("wait", "pageviews", "v1", "--for", "live", "-o", "json")
	f.errs.await(t, "pageviews v1 staged")
	f.exec(`UPDATE kappactl.version SET phase = 'failed', exit_code = 1, error = '{"code": "refused", "args": {"cause": "segment 3: cast"}}', ended_at = clock_timestamp()`)
	f.exec(`UPDATE kappactl.deployment SET state = 'failed', exit_code = 1, message = '{"code": "refused", "args": {"cause": "segment 3: cast"}}', ended_at = clock_timestamp()`)
	f.ends(job.ExitFailed)
	if !strings.Contains(f.errs.String(), "error: segment 3: cast\n") {
		t.Errorf("stderr: %s", f.errs)
	}
	var result deployResult
	if err := json.Unmarshal([]byte(f.out.String()), &result); err != nil || result.ExitCode != 1 || result.Phase != job.Failed {
		t.Errorf("%v: %s", err, f.out)
	}
}

func TestWaitingOutlivesARestartOfTheDatabaseAndTheLossOfTheAgent(t *testing.T) {
	t.Parallel()
	f := newFlow(t)
	f.start("deploy", pageviews())
	f.errs.await(t, "pageviews v1 staged")
	for range 5 { // connections of a pool that does not notice yet
		f.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	}
	f.exec(`UPDATE kappactl.agent SET heartbeat_at = clock_timestamp() - interval '1 minute'`)
	f.errs.await(t, "no agent is alive; waiting for one")
	f.exec(`UPDATE kappactl.agent SET heartbeat_at = clock_timestamp() + interval '1 hour'`)
	f.errs.await(t, "an agent is alive again")
	f.exec(`UPDATE kappactl.version SET phase = 'live', verdict = 'ready', reason = '{}'`)
	f.exec(`UPDATE kappactl.deployment SET state = 'settled', promoted_at = clock_timestamp(), ended_at = clock_timestamp()`)
	f.ends(job.ExitOK)
}

func TestAnActEndsWithTheCodeOfItsAnswer(t *testing.T) {
	t.Parallel()
	f := newFlow(t)
	f.start("deploy", pageviews(), "--detach", "--quiet")
	f.ends(job.ExitOK)
	if f.out.String() != "1\n" || f.errs.String() != "" {
		t.Errorf("stdout: %q, stderr: %q", f.out, f.errs)
	}
	f.start("promote", "pageviews", "v1", "-o", "json", "--ignore-snapshots")
	kafkatest.Until(t, "the request is written", func() bool {
		var args string
		err := f.pool.QueryRow(t.Context(), `SELECT args::text FROM kappactl.request WHERE verb = 'promote' AND number = 1`).Scan(&args)
		return err == nil && strings.Contains(args, "ignore_snapshots")
	})
	f.exec(`UPDATE kappactl.request SET exit_code = 6, answer = '{"code": "refused", "args": {"cause": "live changed since stage"}}', next_command = 'kappactl deploy X', answered_at = now()`)
	f.ends(job.ExitConflict)
	if want := "error: live changed since stage\nnext: kappactl deploy X\n"; f.errs.String() != want {
		t.Errorf("stderr: %q", f.errs)
	}
	var result actResult
	if err := json.Unmarshal([]byte(f.out.String()), &result); err != nil || result.ExitCode != 6 || result.Verb != "promote" || result.Version != "v1" {
		t.Errorf("%v: %s", err, f.out)
	}
}

func TestADetachedDeployWarnsOfAReplayOfNothing(t *testing.T) {
	t.Parallel()
	f := newFlow(t)
	kafkatest.Produce(t, f.brokers, "pageviews", 0, `{"url": "/a"}`)
	text, err := os.ReadFile(pageviews())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pageviews.yaml")
	if err := os.WriteFile(file, append(text, "\nreplay: {start: latest}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	f.start("deploy", file, "--detach")
	f.ends(job.ExitOK)
	if !strings.Contains(f.out.String(), "warning: replay.start (latest) leaves nothing to replay of pageviews") {
		t.Errorf("stdout: %s\nstderr: %s", f.out, f.errs)
	}
}
