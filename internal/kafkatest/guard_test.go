package kafkatest

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A process that holds the launcher's input and is killed must leave no broker behind.
func TestBrokerEndsWhenItsOwnerIsKilled(t *testing.T) {
	t.Parallel()
	script, err := launcher()
	if err != nil {
		t.Fatal(err)
	}
	_ = Real(t) // skips where there is no Java
	// The owner is a shell that holds the pipe to the launcher open and waits.
	owner := exec.Command("sh", "-c", `{ echo held; exec sleep 600; } | "$0" run`, script)
	owner.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the launcher said %q: %v", line, err)
	}
	var b RealBroker
	if err := b.parse(line); err != nil {
		t.Fatal(err)
	}
	sleeper := child(t, owner.Process.Pid, "sleep")
	if err := syscall.Kill(sleeper, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	Until(t, "the broker is gone", func() bool { return syscall.Kill(b.pid, 0) != nil })
	_ = owner.Wait() // a signal ended it
	if _, err := os.Stat(b.data); !os.IsNotExist(err) {
		t.Errorf("the temporary folder %s was left behind: %v", b.data, err)
	}
}

// child finds the process of that name below pid.
func child(t *testing.T, pid int, name string) int {
	t.Helper()
	out, err := exec.Command("pgrep", "-g", strconv.Itoa(pid), "-x", name).Output()
	if err != nil {
		t.Fatalf("find %s of process %d: %v", name, pid, err)
	}
	n, err := strconv.Atoi(strings.Fields(string(out))[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
