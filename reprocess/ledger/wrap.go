package ledger

import (
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// QuotedView is a view's name as SQL needs it.
func QuotedView(v job.ViewName) string { return pg.Ident(v.Schema, v.Name) }

// Wrap adds what was being done to an error; nil stays nil.
func Wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
