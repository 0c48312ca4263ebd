package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgerrcode"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// lackingPatience is how long looking for a missing right may take.
const lackingPatience = 3 * time.Second

// namingRights turns PostgreSQL's refusal of a right into a refusal that names the role and the statements that grant
// what it lacks.
func (a *app) namingRights(ctx context.Context, err error) error {
	var known *job.Refusal
	if pg.Code(err) != pgerrcode.InsufficientPrivilege || errors.As(err, &known) {
		return err
	}
	settings, wrong := a.settings()
	if wrong != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lackingPatience)
	defer cancel()
	pool, wrong := a.connect(ctx, settings)
	if wrong != nil {
		return err
	}
	defer pool.Close()
	role, grants, wrong := pg.LackingRights(ctx, pool)
	if wrong != nil {
		return err
	}
	next := "kappactl init --print   # ends with the rights that are needed"
	if len(grants) > 0 {
		next += "; this role lacks: " + strings.Join(grants, "; ")
	}
	return &job.Refusal{
		Code: job.ExitUnreachable, Cause: fmt.Sprintf("role %s: %s", role, oneLine(err)), Next: next, Err: err,
	}
}
