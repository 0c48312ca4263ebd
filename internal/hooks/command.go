package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// keptOutput is how many bytes of a hook's output or response are kept, from its end.
const keptOutput = 4096

// passed lists the agent's environment variables that a command receives. Others may hold passwords.
func passed() []string {
	return []string{
		"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY",
		"HTTPS_PROXY", "NO_PROXY",
	}
}

// command runs a program with the facts in its environment and as JSON on its standard input. At its timeout the
// program and all its child processes are killed.
func (s *Service) command(ctx context.Context, h Hook, facts job.HookFacts) job.HookOutcome {
	body, err := json.Marshal(facts)
	if err != nil {
		return job.HookOutcome{Reason: err.Error()}
	}
	var output tail
	c := exec.CommandContext(ctx, h.Command[0], h.Command[1:]...)
	c.Env = s.environment(facts)
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(body), &output, &output
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = time.Second
	err = c.Run()
	o := job.HookOutcome{Output: output.text()}
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrWaitDelay), err == nil: // it succeeded; a child process may still hold its output open
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		o.Reason = fmt.Sprintf("killed after its timeout of %s", h.Timeout)
	case errors.As(err, &exit):
		o.Reason = "failed with " + exit.String()
	default:
		o.Reason = fmt.Sprintf("could not run: %v", err)
	}
	return o
}

func (s *Service) environment(f job.HookFacts) []string {
	var env []string
	for _, name := range passed() {
		if v := s.Env(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	previous, deployment := "", ""
	if f.Previous != nil {
		previous = *f.Previous
	}
	if f.Deployment != nil {
		deployment = strconv.FormatInt(*f.Deployment, 10)
	}
	for _, fact := range [][2]string{
		{"EVENT", string(f.Event)},
		{"EVENT_ID", strconv.FormatInt(f.ID, 10)},
		{"AT", f.At.UTC().Format(time.RFC3339Nano)},
		{"JOB", string(f.Job)},
		{"VERSION", f.Version},
		{"PREVIOUS", previous},
		{"DEPLOYMENT", deployment},
		{"VIEW", f.View},
		{"MESSAGE", f.Message},
		{"BY", f.By},
		{"GIT_REVISION", f.GitRevision},
	} {
		env = append(env, "KAPPACTL_"+fact[0]+"="+strings.ReplaceAll(fact[1], "\x00", ""))
	}
	return env
}

// tail keeps the end of what is written to it. The goroutine that copies a command's output owns it.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - keptOutput; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tail) text() string { return clean(t.kept) }

// clean makes bytes valid text for PostgreSQL.
func clean(b []byte) string {
	return strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00", "\uFFFD"))
}
