package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// account is the operating system user that runs the server; nil means the current user.
type account struct {
	uid, gid uint32
	name     string
}

// serverAccount chooses who runs the server of a cluster: the owner of an existing cluster, otherwise the current user,
// or instead of root the account postgres or nobody.
func serverAccount(cluster string) (*account, error) {
	euid := os.Geteuid()
	if info, err := os.Stat(cluster); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int64(st.Uid) != int64(euid) {
			if euid != 0 {
				return nil, fmt.Errorf("%s belongs to another user (uid %d)", cluster, st.Uid)
			}
			return &account{uid: st.Uid, gid: st.Gid, name: "uid " + strconv.Itoa(int(st.Uid))}, nil
		}
	}
	if euid != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody", "daemon"} {
		if u, err := user.Lookup(name); err == nil {
			return accountOf(u)
		}
	}
	return nil, errors.New("PostgreSQL refuses to run as root, and there is no account postgres, nobody or daemon to " +
		"run it; start this as an ordinary user")
}

func accountOf(u *user.User) (*account, error) {
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("account %s: %w", u.Username, err)
	}
	return &account{uid: uint32(uid), gid: uint32(gid), name: u.Username}, nil
}

// attributes makes a child process run as the account, in its own process group, so that Ctrl-C in a terminal does not
// reach it.
func (a *account) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if a != nil {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid, Groups: []uint32{a.gid}}
	}
	return attr
}

func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	if err := os.Chown(path, int(a.uid), int(a.gid)); err != nil {
		return fmt.Errorf("give the cluster's folder to %s: %w", a.name, err)
	}
	return nil
}

// reaches reports whether the account can enter a folder, by running a child process as the account.
func (a *account) reaches(bin Bin, dir string) error {
	if a == nil {
		return nil
	}
	cmd := exec.Command(bin.program("postgres"), "--version")
	cmd.Dir, cmd.SysProcAttr, cmd.Env = dir, a.attributes(), environment()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s cannot enter %s: %w", a.name, dir, err)
	}
	return nil
}

// Folder returns an existing folder for the cluster. This is want, or, as root, a new folder named after want in the
// system's state or temporary folder if the server's account cannot reach want (such as under root's home).
func Folder(bin Bin, want string) (string, error) {
	if err := os.MkdirAll(want, 0o711); err != nil {
		return "", fmt.Errorf("create the cluster's folder: %w", err)
	}
	acc, err := serverAccount(filepath.Join(want, clusterFolder))
	if err != nil {
		return "", err
	}
	first := acc.reaches(bin, want)
	if first == nil {
		return want, nil
	}
	errs := []error{first}
	for _, parent := range []string{"/var/lib/kappactl", os.TempDir(), "/tmp"} {
		dir, err := makeUnder(parent, filepath.Base(filepath.Dir(want)))
		if err == nil {
			if err = acc.reaches(bin, dir); err == nil {
				return dir, nil
			}
			err = errors.Join(err, os.Remove(dir))
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("no folder for the cluster: %w", errors.Join(errs...))
}

func makeUnder(parent, name string) (string, error) {
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(parent, "kappactl-"+name+"-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o711)
}

// environment returns the environment without variables that affect PostgreSQL programs (PGDATA, PGPORT, …) and with
// English messages.
func environment() []string {
	env := []string{"LC_ALL=C"}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "PG") && !strings.HasPrefix(kv, "LC_") && !strings.HasPrefix(kv, "LANG") {
			env = append(env, kv)
		}
	}
	return env
}

// TempFolder creates a folder under the system's temporary folder that the server's account can enter. The caller
// removes it after Stop.
func TempFolder() (string, error) {
	dir, err := os.MkdirTemp("", "kappactl-postgres-")
	if err != nil {
		return "", fmt.Errorf("create the cluster's folder: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		return "", fmt.Errorf("create the cluster's folder: %w", err)
	}
	return dir, nil
}
