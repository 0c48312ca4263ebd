// Command testservers runs a command with one PostgreSQL server, one Kafka broker and one S3 gateway for all of it, and
// ends them when it is over. make test runs go test with it, so that not every package starts servers of its own.
// Commands with a -- between them run beside each other. In CI it runs the few tests that failed once more, alone.
// Temporary files are in memory where there is enough of it.
//
//	go run ./internal/testservers go test ./...
//	go run ./internal/testservers go test ./internal/e2e -- go test -race ./speedlayer ./reprocess
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/s3test"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	commands := split(args)
	if len(commands) == 0 {
		fmt.Fprintln(os.Stderr, "usage: testservers COMMAND [ARGUMENT]… [-- COMMAND [ARGUMENT]…]")
		return 2
	}
	leave, err := inMemory()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testservers:", err)
		return 1
	}
	defer leave()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server, err := pgtest.Start(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testservers: PostgreSQL:", err)
		return 1
	}
	defer func() {
		if err := server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "testservers: PostgreSQL:", err)
		}
	}()
	env := append(os.Environ(), pgtest.EnvDSN+"="+server.DSN)
	brokers, end, skipped, err := kafkatest.Launch(kafkatest.ShortLived)
	switch {
	case err == nil:
		defer end()
		env = append(env, kafkatest.BrokersVariable+"="+strings.Join(brokers, ","))
	case skipped && os.Getenv("CI") != "true":
		fmt.Fprintln(os.Stderr, "testservers: THE TESTS AGAINST REAL KAFKA WILL BE SKIPPED:", err)
	default:
		fmt.Fprintln(os.Stderr, "testservers: Kafka:", err)
		return 1
	}
	gateway, err := s3test.Launch()
	switch {
	case err == nil:
		defer gateway.Stop()
		env = append(env, gateway.Setting())
	case s3test.Skipped(err):
		fmt.Fprintln(os.Stderr, "testservers: THE TESTS AGAINST S3 WILL BE SKIPPED:", err)
	default:
		fmt.Fprintln(os.Stderr, "testservers: S3 gateway:", err)
		return 1
	}
	return beside(ctx, commands, env)
}

// split takes a command line apart at each --.
func split(args []string) (commands [][]string) {
	for len(args) > 0 {
		end := slices.Index(args, "--")
		if end < 0 {
			end = len(args)
		}
		if end > 0 {
			commands = append(commands, args[:end])
		}
		args = args[min(end+1, len(args)):]
	}
	return commands
}

// beside runs the commands at the same time and returns the highest of their exit codes. In CI tests that failed then
// run once more.
func beside(ctx context.Context, commands [][]string, env []string) int {
	outputs, codes := make([]*reading, len(commands)), make([]int, len(commands))
	stdout := &whole{w: os.Stdout}
	var group sync.WaitGroup
	for i, args := range commands {
		outputs[i] = &reading{w: stdout}
		group.Go(func() {
			codes[i] = command(ctx, args, env, outputs[i])
			outputs[i].end()
		})
	}
	group.Wait()
	code := slices.Max(codes)
	if code == 0 || os.Getenv("CI") != "true" {
		return code
	}
	var failures []failure
	var repeats [][]string
	for i, args := range commands {
		again := outputs[i].again(args)
		if codes[i] != 0 && len(again) == 0 {
			return code
		}
		failures, repeats = append(failures, outputs[i].failures...), append(repeats, again...)
	}
	if len(repeats) > mostAgain {
		return code
	}
	heading(os.Stdout, failures)
	worst := 0
	for _, again := range repeats {
		worst = max(worst, command(ctx, again, env, os.Stdout))
	}
	return worst
}

func command(ctx context.Context, args, env []string, stdout io.Writer) int {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = os.Stdin, stdout, os.Stderr, env
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitCode()
	case err != nil:
		fmt.Fprintln(os.Stderr, "testservers:", err)
		return 1
	}
	return 0
}
