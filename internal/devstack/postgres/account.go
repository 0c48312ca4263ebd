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

// account is the operating system's user that runs the server; nil = whoever runs us.
type account struct {
	uid, gid uint32
	name     string
}

// serverAccount chooses who runs the server of a cluster: an existing cluster's owner, else ourselves, and in place of
// root the account postgres or nobody.
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
	return nil, errors.New("PostgreSQL refuses to run as root, and there is no account postgres, nobody or daemon to run it; start this as an ordinary user")
}

func accountOf(u *user.User) (*account, error) {
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("account %s: %w", u.Username, err)
	}
	return &account{uid: uint32(uid), gid: uint32(gid), name: u.Username}, nil
}

// attributes makes a child run as the account, in a process group of its own: Ctrl-C in a terminal must reach us alone.
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

// reaches says whether the account can enter a folder; it lets a child try.
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

// Folder returns a folder in which the cluster can live: want, or as root, when the server's account cannot reach want
// (as under root's home), a new one named after it in the system's state or temporary folder. The folder exists then.
func Folder(bin Bin, want string) (string, error) {
	if err := os.MkdirAll(want, 0o711); err != nil {
		return "", fmt.Errorf("make the cluster's folder: %w", err)
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

// environment is ours without what would steer a PostgreSQL program (PGDATA, PGPORT, …) and with English messages.
func environment() []string {
	env := []string{"LC_ALL=C"}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "PG") && !strings.HasPrefix(kv, "LC_") && !strings.HasPrefix(kv, "LANG") {
			env = append(env, kv)
		}
	}
	return env
}

// TempFolder makes a new folder under the system's temporary folder that the server's account can enter; the caller
// removes it after Stop.
func TempFolder() (string, error) {
	dir, err := os.MkdirTemp("", "kappactl-postgres-")
	if err != nil {
		return "", fmt.Errorf("make the cluster's folder: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		return "", fmt.Errorf("make the cluster's folder: %w", err)
	}
	return dir, nil
}
