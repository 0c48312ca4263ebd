package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
)

func TestErrorsHaveTheirExitCodes(t *testing.T) {
	ended := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		return ctx
	}
	going := context.Background()
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		code job.ExitCode
		says string
	}{
		"usage":                {going, &usageError{Cause: "unknown flag"}, 2, "unknown flag"},
		"wrong job file":       {going, job.Problems{{File: "a.yaml", Line: 2, Column: 3, Cause: "no"}}, 2, "a.yaml:2:3: no"},
		"refusal":              {going, fmt.Errorf("stage a: %w", &job.Refusal{Code: 6, Cause: "taken"}), 6, "error: taken\n"},
		"refusal, interrupted": {ended(errInterrupted), &job.Refusal{Code: 7, Cause: "gap"}, 7, "gap"},
		"interrupted":          {ended(errInterrupted), boom, 130, "interrupted"},
		"timed out":            {ended(errTimeout), fmt.Errorf("read: %w", context.DeadlineExceeded), 4, "error: timed out\nnext: the same command with a longer --timeout\n"},
		"timed out in an act":  {ended(errTimeout), boom, 4, "timed out: boom"},
		"no database":          {going, &pg.ConnectError{Host: "h:1", Err: boom}, 11, "PostgreSQL at h:1"},
		"no connection string": {going, &pg.ConnectError{Err: boom}, 2, "next: correct --dsn"},
		"no broker":            {going, fmt.Errorf("x: %w", &kafka.ConnectError{Brokers: []string{"h:1"}, Err: boom}), 11, "Kafka at h:1"},
		"no schema":            {going, &pg.SchemaError{Schema: "k", Missing: true}, 11, "kappactl init"},
		"no UTF8":              {going, fmt.Errorf("migrate: %w", &pg.ServerError{Cause: "database d is in LATIN1", Cure: "CREATE DATABASE"}), 2, "error: database d is in LATIN1\n"},
		"missing rights":       {going, &pgconn.PgError{Code: pgerrcode.InsufficientPrivilege, Message: "permission denied"}, 11, "permission denied"},
		"another":              {going, fmt.Errorf("a\n b: %w", boom), 1, "error: a b: boom\n"},
	} {
		f := explain(c.ctx, c.err)
		if f.Code != c.code || !strings.Contains(f.String(), c.says) {
			t.Errorf("%s: exit %d, %q; want %d, %q", name, f.Code, f, c.code, c.says)
		}
	}
}

func TestNextCommandOfAnInterruptedWaitSaysHowToComeBack(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errInterrupted)
	f := explain(ctx, withNext(errInterrupted, "kappactl wait a v1 --for live"))
	if f.Code != job.ExitInterrupted || f.Next != "kappactl wait a v1 --for live" {
		t.Errorf("got %+v", f)
	}
}

func TestDebugPrintsWhatAnErrorWraps(t *testing.T) {
	dsn := []string{"--dsn", "host=127.0.0.1 port=1 user=u dbname=d"}
	code, _, plain := runCLI(t, append([]string{"status"}, dsn...)...)
	debugged, _, errs := runCLI(t, append([]string{"status", "--debug"}, dsn...)...)
	if code != job.ExitUnreachable || debugged != code || strings.Contains(plain, "debug:") || !strings.Contains(errs, "debug: *pg.ConnectError: ") ||
		strings.Count(errs, "debug: ") < 3 || !strings.Contains(errs, "\nerror: PostgreSQL at 127.0.0.1:1: ") {
		t.Errorf("exit %d and %d\n%s\nwith --debug:\n%s", code, debugged, plain, errs)
	}
	got := chain(fmt.Errorf("a: %w", errors.Join(errors.New("b"), fmt.Errorf("c: %w", errTimeout))))
	want := []string{
		"*fmt.wrapError: a: b c: timed out", "  *errors.joinError: b c: timed out", "    *errors.errorString: b", "    *fmt.wrapError: c: timed out",
		"      *errors.errorString: timed out",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
