package cli

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kappactl/kappactl/internal/job"
)

// where is the context and the database that a command works in.
type where struct {
	Context  string `json:"context"` // empty: the settings are from flags and variables
	Database string `json:"database"`
}

// where returns the context and the database that the client is connected to.
func (c *client) where() where {
	host, port, database := c.pool.Place()
	if !strings.HasPrefix(host, "/") { // else the folder of a socket
		host = net.JoinHostPort(host, strconv.Itoa(int(port)))
	}
	return where{Context: c.settings.Context, Database: database + " at " + host}
}

// String names both: context prod, database shop at db1:5432.
func (w where) String() string {
	if w.Context == "" {
		return "database " + w.Database
	}
	return "context " + w.Context + ", database " + w.Database
}

// yesFlag adds --yes to a command that readers could notice.
func (a *app) yesFlag(f *pflag.FlagSet) {
	f.BoolVarP(&a.flags.yes, "yes", "y", false, "do not ask in a protected context")
}

// protect asks for the name of a protected context before readers could notice what the command does; off a terminal
// that needs --yes.
func (a *app) protect(c *client, does string) error {
	name := c.settings.Context
	if !c.settings.Protected || a.flags.yes {
		return nil
	}
	if !a.sys.InTTY {
		return &job.Refusal{
			Code: job.ExitUsage, Cause: fmt.Sprintf("%s: the context %s is protected: off a terminal it needs --yes", does,
				name),
			Next: "add --yes, or name another context with --context",
		}
	}
	a.tell("%s in the protected %s\ntype the context's name to do it: ", does, c.where())
	line, err := readLine(a.sys.In)
	if err == nil && line == name {
		return nil
	}
	if err != nil {
		a.tell("\n") // nobody ended the line of the question
	}
	return &job.Refusal{
		Code: job.ExitUsage, Cause: "not confirmed: nothing was done",
		Next: "the same command again; --dry-run shows what it would do, --yes does not ask",
	}
}

// readLine reads a line and no more, so that another question finds the rest.
func readLine(in io.Reader) (string, error) {
	if r, ok := in.(*bufio.Reader); ok {
		line, err := r.ReadString('\n')
		return strings.TrimSpace(line), err
	}
	var line []byte
	for one := make([]byte, 1); ; {
		n, err := in.Read(one)
		switch {
		case n == 1 && one[0] == '\n':
			return strings.TrimSpace(string(line)), nil
		case n == 1:
			line = append(line, one[0])
		}
		if err != nil {
			return strings.TrimSpace(string(line)), err
		}
	}
}
