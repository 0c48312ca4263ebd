package postgres

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Log("not root: nothing to drop, the other tests cover this account")
		t.SkipNow()
	}
}

func TestRootRunsTheServerAsAnUnprivilegedAccount(t *testing.T) {
	asRoot(t)
	s := start(t, testConfig(t))
	info, err := os.Stat(s.config.cluster())
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if owner == 0 {
		t.Error("the cluster belongs to root")
	}
	if _, err := os.Stat("/proc/self/status"); err != nil {
		return // no Linux: the owner has to do
	}
	status, err := os.ReadFile("/proc/" + strconv.Itoa(s.PID()) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "Uid:") && strings.Contains(line, "\t0\t") {
			t.Errorf("the server runs as root: %s", line)
		}
	}
}

func TestUnreachableFolderSendsTheClusterElsewhere(t *testing.T) {
	asRoot(t)
	private := t.TempDir()
	if err := os.Chmod(private, 0o700); err != nil { // as root's home
		t.Fatal(err)
	}
	c := testConfig(t)
	want := filepath.Join(private, "data", "postgres")
	got, err := Folder(c.Bin, want)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(got) })
	if strings.HasPrefix(got, private) {
		t.Fatalf("the cluster would live in %s, which the account cannot reach", got)
	}
	c.Data = got
	if n := query[int](t, start(t, c), "postgres", "SELECT 1"); n != 1 {
		t.Error(n)
	}
}

func TestReachableFolderIsUsed(t *testing.T) {
	c := testConfig(t)
	want := filepath.Join(c.Data, "inner", "postgres")
	if got, err := Folder(c.Bin, want); err != nil || got != want {
		t.Errorf("Folder(%s) = %s, %v", want, got, err)
	}
}

// TestOrdinaryUser runs the server tests again as an account without rights.
func TestOrdinaryUser(t *testing.T) {
	asRoot(t)
	dir, err := TempFolder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "postgres.test") // go test builds in a folder of root's own
	if err := os.WriteFile(copied, program, 0o755); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	acc, err := accountOf(nobody)
	if err != nil {
		t.Fatal(err)
	}
	if err := acc.own(home); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), copied, "-test.run=^(TestRestart|TestStartAdopts|TestConnection)", "-test.v")
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+home)
	cmd.SysProcAttr = acc.attributes()
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "--- PASS") != 3 {
		t.Errorf("%v\n%s", err, out)
	}
}
