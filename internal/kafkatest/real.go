package kafkatest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// shared is the one real broker of this test process: a JVM is too slow to start for every test. The mutex owns it.
var shared struct {
	sync.Mutex
	broker *RealBroker
	err    error
}

// errNoJava means that this machine cannot run a real broker.
var errNoJava = errors.New("a real Kafka broker needs Java 17 and, for its first installation, Maven")

// launcherMissing is the exit code of kafka.sh when Java or Maven is missing.
const launcherMissing = 69

// Real returns the address of a real Kafka broker, shared by all tests of the process.
func Real(t testing.TB) []string {
	t.Helper()
	if s := os.Getenv(BrokersVariable); s != "" {
		return strings.Split(s, ",")
	}
	shared.Lock()
	defer shared.Unlock()
	if shared.broker == nil && shared.err == nil {
		shared.broker, shared.err = launch("", 0, nil, ShortLived)
	}
	giveUp(t, shared.err)
	return shared.broker.Brokers
}

// giveUp ends the test when err is set: skipped where Java is missing on a developer's machine, failed everywhere else.
func giveUp(t testing.TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case errors.Is(err, errNoJava) && os.Getenv("CI") != "true":
		t.Skipf("SKIPPED, not tested against real Kafka: %v", err)
	default:
		t.Fatalf("start a real broker: %v", err)
	}
}

// RealBroker is a real broker that one test owns and may stop. It is used from one goroutine.
type RealBroker struct {
	Brokers []string

	data    string
	port    int
	set     []string
	pid     int
	cmd     *exec.Cmd
	stdin   io.Closer
	stdout  io.Closer
	running bool
}

// StartReal starts a broker for this test alone, with additional broker settings KEY=VALUE.
func StartReal(t testing.TB, set ...string) *RealBroker {
	t.Helper()
	b, err := launch(t.TempDir(), 0, set, ShortLived)
	giveUp(t, err)
	t.Cleanup(b.stop)
	return b
}

// Kill ends the broker with SIGKILL, as a crash would, and returns when it is gone.
func (b *RealBroker) Kill(t testing.TB) {
	t.Helper()
	if !b.running {
		t.Fatal("kill a broker that does not run")
	}
	if err := syscall.Kill(b.pid, syscall.SIGKILL); err != nil {
		t.Fatalf("kill the broker: %v", err)
	}
	b.stop()
}

// Start starts the broker again on its port and its log.
func (b *RealBroker) Start(t testing.TB) {
	t.Helper()
	if b.running {
		t.Fatal("start a broker that runs")
	}
	n, err := launch(b.data, b.port, b.set, ShortLived)
	if err != nil {
		t.Fatalf("start the broker again: %v", err)
	}
	*b = *n
}

// Restart kills the broker and starts it again.
func (b *RealBroker) Restart(t testing.TB) {
	t.Helper()
	b.Kill(t)
	b.Start(t)
}

// stop ends launcher and broker: the launcher kills the broker when its input ends.
func (b *RealBroker) stop() {
	if !b.running {
		return
	}
	b.running = false
	_ = b.stdin.Close()
	_ = b.cmd.Wait() // its code says only how it was ended
	_ = b.stdout.Close()
}

// launch starts kafka.sh and waits for its ready line. An empty data folder means a temporary one, which the launcher
// removes.
func launch(data string, port int, set []string, options ...string) (*RealBroker, error) {
	script, err := launcher()
	if err != nil {
		return nil, err
	}
	args := append([]string{"run"}, options...)
	if data != "" {
		args = append(args, "--data", data)
	}
	if port != 0 {
		args = append(args, "--port", strconv.Itoa(port))
	}
	for _, s := range set {
		args = append(args, "--set", s)
	}
	cmd := exec.Command(script, args...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	said, err := os.CreateTemp("", "kappactl-kafka-stderr")
	if err != nil {
		return nil, err
	}
	defer said.Close()
	defer func() { _ = os.Remove(said.Name()) }()
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	b := &RealBroker{cmd: cmd, stdin: stdin, stdout: stdout, set: set, running: true}
	line, _ := bufio.NewReader(stdout).ReadString('\n') // without a line the parse below fails and stderr says why
	if err := b.parse(line); err != nil {
		_ = stdin.Close()
		return nil, launchError(cmd.Wait(), said.Name())
	}
	return b, nil
}

// parse reads the launcher's line: ready brokers=HOST:PORT pid=PID data=DIR.
func (b *RealBroker) parse(line string) error {
	var addr string
	if _, err := fmt.Sscanf(line, "ready brokers=%s pid=%d data=%s", &addr, &b.pid, &b.data); err != nil {
		return fmt.Errorf("read the launcher's line %q: %w", line, err)
	}
	_, port, _ := strings.Cut(addr, ":")
	b.Brokers = []string{addr}
	var err error
	b.port, err = strconv.Atoi(port)
	return err
}

func launchError(err error, stderr string) error {
	text, readErr := os.ReadFile(stderr)
	if readErr != nil {
		return readErr
	}
	detail := strings.TrimSpace(string(text))
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == launcherMissing {
		return fmt.Errorf("%w: %s", errNoJava, detail)
	}
	return fmt.Errorf("%s: %w", detail, err)
}

// launcher finds scripts/kafka/kafka.sh from the folder a test runs in.
func launcher() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		path := filepath.Join(dir, "scripts", "kafka", "kafka.sh")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find scripts/kafka/kafka.sh above the test's folder")
		}
		dir = parent
	}
}

// Pause stops the broker's process without ending it: connections stay open and nothing is answered.
func (b *RealBroker) Pause(t testing.TB) { b.signal(t, syscall.SIGSTOP) }

// Resume lets a paused broker go on.
func (b *RealBroker) Resume(t testing.TB) { b.signal(t, syscall.SIGCONT) }

func (b *RealBroker) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if !b.running {
		t.Fatalf("send %s to a broker that does not run", s)
	}
	if err := syscall.Kill(b.pid, s); err != nil {
		t.Fatalf("send %s to the broker: %v", s, err)
	}
}

// CutLog takes the end off a partition's log while the broker is down, as a machine that lost power may: about half of
// its newest segment's bytes are left. Started again, the broker serves what it finds under a new leader epoch.
func (b *RealBroker) CutLog(t testing.TB, topic string, partition int32) {
	t.Helper()
	if b.running {
		t.Fatal("cut the log of a broker that runs")
	}
	segments, err := filepath.Glob(filepath.Join(b.data, "log", fmt.Sprintf("%s-%d", topic, partition), "*.log"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("no log of %s/%d: %v", topic, partition, err)
	}
	newest := segments[len(segments)-1]
	info, err := os.Stat(newest)
	if err == nil {
		err = os.Truncate(newest, info.Size()/2)
	}
	if err != nil {
		t.Fatalf("cut the log of %s/%d: %v", topic, partition, err)
	}
}
