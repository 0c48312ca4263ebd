package compare

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// program runs this binary as a user would, on one control schema.
type program struct {
	path   string
	args   []string // that reach the servers
	env    []string
	schema string
}

func (p program) command(ctx context.Context, args ...string) *exec.Cmd {
	all := append(append([]string{args[0], "--schema", p.schema}, p.args...), args[1:]...)
	cmd := exec.CommandContext(ctx, p.path, all...)
	cmd.Env = p.env
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// endedError is a command that did not end with 0.
type endedError struct {
	command string
	code    int
	output  string
}

func (e *endedError) Error() string {
	return fmt.Sprintf("kappactl %s ended with exit code %d: %s", e.command, e.code, e.output)
}

// run runs a command to its end and reads the JSON that it prints into result; a nil result is not read.
func (p program) run(ctx context.Context, result any, args ...string) error {
	cmd := p.command(ctx, append(args, "--output", "json", "--timeout", "0")...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &exit):
		text := strings.TrimSpace(errs.String())
		if lines := strings.Split(text, "\n"); len(lines) > 3 {
			text = strings.Join(lines[len(lines)-3:], "\n")
		}
		return &endedError{strings.Join(args, " "), exit.ExitCode(), text}
	case err != nil:
		return fmt.Errorf("run kappactl %s: %w", args[0], err)
	case result == nil:
		return nil
	}
	if err := json.Unmarshal(out.Bytes(), result); err != nil {
		return fmt.Errorf("read the output of kappactl %s: %w", args[0], err)
	}
	return nil
}

// used holds the resources that an agent used from its start to its end.
type used struct {
	cpu     float64 // seconds
	fetched int64   // bytes of fetch answers
}

// serving runs an agent while do works, and returns what it took. address is where the agent of a process answers.
func (p program) serving(ctx context.Context, address func(ctx context.Context, pid int) (string, error),
	do func(context.Context) error,
) (used, error) {
	cmd := p.command(ctx, "serve", "--http", "127.0.0.1:0", "--quiet")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Discard, &log
	if err := cmd.Start(); err != nil {
		return used{}, fmt.Errorf("start an agent: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	working, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		err := <-ended
		ended <- err
		cancel(fmt.Errorf("the agent ended: %w", errors.Join(err, errors.New(strings.TrimSpace(log.String())))))
	}()
	at, err := address(working, cmd.Process.Pid)
	if err == nil {
		err = do(working)
	}
	var u used
	if err == nil {
		u.fetched, err = fetchedBytes(working, at)
	}
	if err != nil && working.Err() != nil {
		err = context.Cause(working)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself, which is in err
	<-ended                                 //nolint:errcheck // it was asked to end
	u.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	return u, err
}

// fetchedMetric counts the bytes of fetch answers of one agent.
const fetchedMetric = "kappactl_agent_fetched_bytes_total "

// fetchedBytes reads the metric of the agent at an address.
func fetchedBytes(ctx context.Context, address string) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return 0, fmt.Errorf("read the agent's metrics: %w", err)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("read the agent's metrics: %w", err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if value, found := bytes.CutPrefix(lines.Bytes(), []byte(fetchedMetric)); found {
			n, err := strconv.ParseFloat(string(value), 64)
			return int64(n), err
		}
	}
	return 0, errors.Join(errors.New("the agent has no metric "+strings.TrimSpace(fetchedMetric)), lines.Err())
}
