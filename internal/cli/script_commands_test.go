package cli

import (
	"context"
	"errors"
	"os/exec"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"
)

func contextOfCleanup() context.Context { return context.Background() }

// alive writes the heartbeat of an agent that does nothing, good for an hour.
func alive(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: alive")
	}
	conn, err := pgx.Connect(context.Background(), ts.Getenv("DSN"))
	ts.Check(err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(context.Background(), `INSERT INTO kappactl.agent (id, host, pid, release, capacity, dialects, heartbeat_at)
		VALUES ('script', 'script', 1, 'script', 1, '{1}', clock_timestamp() + interval '1 hour')`)
	ts.Check(err)
}

// loaded is how many times as long as on a quiet machine a command may take.
const loaded = 3

// exits runs kappactl and checks its exit code, and that it took no longer than the seconds: exits CODE SECONDS ARGUMENT….
// When the code is not 0 the reason is on the error stream.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE SECONDS ARGUMENT…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	seconds, err := strconv.ParseFloat(args[1], 64)
	ts.Check(err)
	started := time.Now()
	err = ts.Exec("kappactl", args[2:]...)
	took := time.Since(started)
	code := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if code != want {
		ts.Fatalf("kappactl %v ended with %d, want %d", args[2:], code, want)
	}
	if took.Seconds() > loaded*seconds {
		ts.Fatalf("kappactl %v took %s, at most %gs is allowed", args[2:], took, loaded*seconds)
	}
}
