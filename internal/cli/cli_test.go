package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

func fixedNow() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// fakeSystem is a process with this environment and no terminal.
func fakeSystem(env map[string]string) (sys System, out, errs *bytes.Buffer) {
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	return System{
		In: strings.NewReader(""), Out: out, Err: errs, Env: func(k string) string { return env[k] }, Now: fixedNow,
	}, out, errs
}

// runCLI runs a command line as a script would.
func runCLI(t *testing.T, args ...string) (code job.ExitCode, out, errs string) {
	t.Helper()
	sys, o, e := fakeSystem(nil)
	code = Run(context.Background(), sys, args)
	return code, o.String(), e.String()
}
