package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// machine is a made-up system: programs by path with the version they print, links, and variables.
type machine struct {
	programs map[string]string
	links    map[string]string
	onPath   map[string]string
	env      map[string]string
}

func (m machine) system() system {
	return system{
		getenv: func(name string) string { return m.env[name] },
		lookPath: func(name string) (string, error) {
			if p, ok := m.onPath[name]; ok {
				return p, nil
			}
			return "", fs.ErrNotExist
		},
		resolve: func(p string) (string, error) {
			if to, ok := m.links[p]; ok {
				return to, nil
			}
			return p, nil
		},
		glob: func(pattern string) ([]string, error) {
			var found []string
			for p := range m.programs {
				if ok, err := path.Match(pattern, p); ok && err == nil {
					found = append(found, p)
				}
			}
			return found, nil
		},
		output: func(_ context.Context, program string, _ ...string) (string, error) {
			if out, ok := m.programs[program]; ok {
				return out, nil
			}
			return "", fs.ErrNotExist
		},
		install: "install PostgreSQL with: apt-get install postgresql",
	}
}

func server(programs map[string]string, dir string, version string) map[string]string {
	for _, name := range []string{"postgres", "initdb"} {
		programs[dir+"/"+name] = fmt.Sprintf("%s (PostgreSQL) %s\n", name, version)
	}
	return programs
}

func TestFind(t *testing.T) {
	debian := func(versions ...string) map[string]string {
		programs := map[string]string{}
		for _, v := range versions {
			server(programs, "/usr/lib/postgresql/"+v+"/bin", v+".3 (Debian "+v+".3-1)")
		}
		return programs
	}
	for _, c := range []struct {
		name     string
		machine  machine
		explicit string
		want     Bin
		problem  string
	}{
		{name: "distribution folder, newest first", machine: machine{programs: debian("9", "15", "17", "16")}, want: Bin{"/usr/lib/postgresql/17/bin", 17}},
		{name: "PATH through symbolic links, before newer ones elsewhere", want: Bin{"/usr/lib/postgresql/15/bin", 15}, machine: machine{
			programs: debian("15", "17"), onPath: map[string]string{"postgres": "/usr/local/bin/postgres"},
			links: map[string]string{"/usr/local/bin/postgres": "/usr/lib/postgresql/15/bin/postgres"},
		}},
		{name: "an old one on PATH is passed over", want: Bin{"/usr/lib/postgresql/16/bin", 16}, machine: machine{
			programs: debian("13", "16"), onPath: map[string]string{"postgres": "/usr/lib/postgresql/13/bin/postgres"},
		}},
		{name: "pg_config", want: Bin{"/opt/pg/bin", 18}, machine: machine{
			programs: server(map[string]string{"/usr/bin/pg_config": "/opt/pg/bin\n"}, "/opt/pg/bin", "18beta1"),
			onPath:   map[string]string{"pg_config": "/usr/bin/pg_config"},
		}},
		{name: "pg_config of a client package", problem: "no PostgreSQL server binaries", machine: machine{
			programs: map[string]string{"/usr/bin/pg_config": "/usr/lib/pg/bin\n"}, onPath: map[string]string{"pg_config": "/usr/bin/pg_config"},
		}},
		{name: "PGDG on RHEL", machine: machine{programs: server(map[string]string{}, "/usr/pgsql-17/bin", "17.1")}, want: Bin{"/usr/pgsql-17/bin", 17}},
		{name: "Homebrew", machine: machine{programs: server(map[string]string{}, "/opt/homebrew/opt/postgresql@17/bin", "17.1 (Homebrew)")}, want: Bin{"/opt/homebrew/opt/postgresql@17/bin", 17}},
		{name: "Postgres.app", machine: machine{programs: server(map[string]string{}, "/Applications/Postgres.app/Contents/Versions/16/bin", "16.1")}, want: Bin{"/Applications/Postgres.app/Contents/Versions/16/bin", 16}},
		{name: "variable", machine: machine{programs: debian("15", "17"), env: map[string]string{BinVariable: "/usr/lib/postgresql/15/bin"}}, want: Bin{"/usr/lib/postgresql/15/bin", 15}},
		{name: "flag before variable", explicit: "/usr/lib/postgresql/16/bin", want: Bin{"/usr/lib/postgresql/16/bin", 16}, machine: machine{
			programs: debian("15", "16"), env: map[string]string{BinVariable: "/usr/lib/postgresql/15/bin"},
		}},
		{name: "flag names the program", explicit: "/usr/lib/postgresql/16/bin/postgres", machine: machine{programs: debian("16")}, want: Bin{"/usr/lib/postgresql/16/bin", 16}},
		{name: "flag names nothing: no look elsewhere", explicit: "/nowhere", machine: machine{programs: debian("16")}, problem: "--postgres-bin /nowhere"},
		{name: "variable names an old one", machine: machine{programs: debian("13", "16"), env: map[string]string{BinVariable: "/usr/lib/postgresql/13/bin"}}, problem: "is PostgreSQL 13, and 15 or newer is needed"},
		{name: "only an old one", machine: machine{programs: debian("14")}, problem: "/usr/lib/postgresql/14/bin is PostgreSQL 14"},
		{name: "postgres without initdb", machine: machine{programs: map[string]string{"/usr/lib/postgresql/15/bin/postgres": "postgres (PostgreSQL) 15.1"}}, problem: "initdb does not run"},
		{name: "nothing", machine: machine{}, problem: "no PostgreSQL server binaries"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.machine.system().find(t.Context(), c.explicit)
			if c.problem != "" {
				if err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Fatalf("error %v, want %q", err, c.problem)
				}
				var missing *NotFoundError
				if errors.As(err, &missing) && !strings.Contains(missing.Next(), "apt-get install postgresql") {
					t.Errorf("next: %q", missing.Next())
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInstallHintNamesThePackageManager(t *testing.T) {
	for release, want := range map[string]string{
		"debian": "apt-get", "ubuntu debian": "apt-get", "rocky rhel centos fedora": "dnf", "alpine": "apk",
		"opensuse-leap suse opensuse": "zypper", "arch": "pacman", "": "package manager",
	} {
		if got := installHint("linux", release); !strings.Contains(got, want) {
			t.Errorf("%q: %q", release, got)
		}
	}
	if got := installHint("darwin", ""); !strings.Contains(got, "brew") {
		t.Error(got)
	}
}

func TestParsePostmaster(t *testing.T) {
	for text, want := range map[string]postmaster{
		"12\n/d\n17\n5433\n\n127.0.0.1\n  1 2\nready   \n": {12, 5433, "ready"},
		"12\n/d\n17\n5433\n": {12, 5433, ""},
		"12\n":               {12, 0, ""},
	} {
		got, err := parsePostmaster(text)
		if err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x\n", "-4\n"} {
		if _, err := parsePostmaster(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
