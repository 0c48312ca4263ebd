package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	program := flag.String("program", "bin/kappactl", "kappactl to take pictures of")
	out := flag.String("out", "docs/images", "folder of the pictures")
	flag.Parse()
	if err := run(*program, *out); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(program, out string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	return take(ctx, program, out)
}

// studio is a running stack and where pictures go.
type studio struct {
	program, out, dir string
	config            string
}

func take(ctx context.Context, program, out string) (err error) {
	s := &studio{}
	if s.program, err = filepath.Abs(program); err != nil {
		return err
	}
	if s.out, err = filepath.Abs(out); err != nil {
		return err
	}
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "kappactl-pictures-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	if err := s.demo(ctx); err != nil {
		return err
	}
	stack, err := s.dev(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stack()) }()
	return s.watch(ctx)
}

// demo takes the beginning of `kappactl demo`, up to the first answer of the view.
func (s *studio) demo(ctx context.Context) error {
	t, err := start(ctx, 118, 90, s.dir, nil, s.program, "demo")
	if err != nil {
		return err
	}
	defer t.end()
	from, to := 0, 0
	err = t.await(ctx, "the change of the code", func(text string) bool {
		from, to = lineOf(text, "# Page views wait"), lineOf(text, "# The code changes")
		return from >= 0 && to > from
	})
	if err != nil {
		return err
	}
	return t.save(filepath.Join(s.out, "demo.svg"), "kappactl demo", "The beginning of kappactl demo: a topic is loaded, a job file is checked and deployed, and its view is queried", from, to-1)
}

// dev starts the stack and returns what ends it.
func (s *studio) dev(ctx context.Context) (func() error, error) {
	cmd := exec.CommandContext(ctx, s.program, "dev", "--data", filepath.Join(s.dir, "stack"), "--quiet")
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(pipe).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("kappactl dev: %w", err), cmd.Wait())
	}
	for _, word := range strings.Fields(line) {
		if path, is := strings.CutPrefix(word, "config="); is {
			s.config = path
		}
	}
	return func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		_ = cmd.Wait() // it was ended from here
		return nil
	}, nil
}

func (s *studio) run(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, s.program, args...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "KAPPACTL_CONFIG="+s.config)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kappactl %s: %w\n%s", strings.Join(args, " "), err, text)
	}
	return nil
}

// background runs a command until it ends or the pictures are made.
func (s *studio) background(ctx context.Context, args ...string) (stop func(), err error) {
	cmd := exec.CommandContext(ctx, s.program, args...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "KAPPACTL_CONFIG="+s.config)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("kappactl %s: %w", strings.Join(args, " "), err)
	}
	return func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // when it has ended already there is nothing to end
		_ = cmd.Wait()
	}, nil
}

// watch takes the pages of `kappactl watch` while a version replays.
func (s *studio) watch(ctx context.Context) error {
	if err := s.stage(ctx); err != nil {
		return err
	}
	stopLoad, err := s.background(ctx, "dev", "load", "late.ndjson", "--topic", "pageviews", "--rate", "700/s", "--quiet")
	if err != nil {
		return err
	}
	defer stopLoad()
	stopDeploy, err := s.background(ctx, "deploy", "pageviews-v2.yaml", "--quiet")
	if err != nil {
		return err
	}
	defer stopDeploy()
	t, err := start(ctx, 118, 30, s.dir, []string{"KAPPACTL_CONFIG=" + s.config}, s.program, "watch")
	if err != nil {
		return err
	}
	defer t.end()
	if err := t.await(ctx, "the jobs", func(text string) bool {
		return strings.Contains(text, "replaying") && strings.Contains(text, "slow_pages")
	}); err != nil {
		return err
	}
	if err := t.press("g/pageviews\r\r"); err != nil {
		return err
	}
	if err := t.await(ctx, "v2 half replayed", func(text string) bool { return percent(text) >= 45 }); err != nil {
		return err
	}
	if err := t.save(filepath.Join(s.out, "watch-deployment.svg"), "kappactl watch pageviews", "The page of a deployment: version 2 replays history beside the live version 1, with progress, partitions and rates", 0, t.emu.Height()); err != nil {
		return err
	}
	return s.otherPages(ctx, t)
}

func (s *studio) otherPages(ctx context.Context, t *terminal) error {
	for _, page := range []struct{ keys, shows, file, title, about string }{
		{"e", "staged as", "watch-events.svg", "kappactl watch: events", "The page of events: what happened to the job, when, and by whom"},
		{"\x1b", "WAITS FOR", "", "", ""},
		{"\x1b", "JOB", "", "", ""},
		{"\x1b", "slow_pages", "watch-overview.svg", "kappactl watch", "The page of all jobs: live, candidate and standby versions with phase, progress, lag, ETA and verdict"},
		{"G\r", "b layers", "", "", ""},
		{"b", "● generation 2", "watch-layers.svg", "kappactl watch visits: layers", "The page of layers: the live generation with its epochs, the schedule, the archive, and all generations with size, cut and duration"},
		{"\x1b", "WAITS FOR", "", "", ""},
		{"\x1b", "slow_pages", "", "", ""},
		{"g", "slow_pages", "", "", ""},
		{"j\r", "somebody to promote it", "", "", ""},
		{"p", "to confirm", "", "", ""},
		{"slow_pa", "slow_pa█", "watch-confirm.svg", "kappactl watch: promote", "Confirming a promote: what it does, how the version is now, the command that does the same, and the job's name half typed"},
	} {
		if err := t.press(page.keys); err != nil {
			return err
		}
		if err := t.await(ctx, page.shows, func(text string) bool {
			return strings.Contains(text, page.shows) && !strings.Contains(text, "   0.0%  ") // not what was seen before
		}); err != nil {
			return err
		}
		if page.file == "" {
			continue
		}
		if err := t.save(filepath.Join(s.out, page.file), page.title, page.about, 0, t.emu.Height()); err != nil {
			return err
		}
	}
	return nil
}

var percentOf = regexp.MustCompile(`PROGRESS.*?([0-9]+)\.[0-9]%`)

// percent is the progress on the page of a deployment.
func percent(text string) int {
	found := percentOf.FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		return 0
	}
	return n
}
