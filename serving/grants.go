package serving

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
)

const selectPrivilege = "SELECT"

// specGrants reads serve.grant: {select: [analyst, public]}.
func specGrants(spec map[string][]string) ([]Grant, error) {
	var out []Grant
	for _, privilege := range slices.Sorted(maps.Keys(spec)) {
		if !strings.EqualFold(privilege, selectPrivilege) {
			return nil, &job.Refusal{
				Code:  job.ExitUsage,
				Cause: fmt.Sprintf("serve.grant: %q: a serving view is only read", privilege),
				Next:  "use select",
			}
		}
		for _, role := range spec[privilege] {
			if err := checkNames("role", role); err != nil {
				return nil, err
			}
			if strings.EqualFold(role, "public") {
				role = ""
			}
			out = append(out, Grant{Privilege: selectPrivilege, Role: role})
		}
	}
	return out, nil
}

func grant(ctx context.Context, tx pgx.Tx, view job.ViewName, grants []Grant) error {
	for _, g := range grants {
		on := ""
		if g.OnColumn != "" {
			on = " (" + pgIdent(g.OnColumn) + ")"
		}
		sql := fmt.Sprintf("GRANT %s%s ON %s TO %s", g.Privilege, on, pgx.Identifier{view.Schema, view.Name}.Sanitize(),
			roleName(g.Role))
		if g.Grantable {
			sql += " WITH GRANT OPTION"
		}
		if _, err := tx.Exec(ctx, sql); err != nil {
			return refused(err)
		}
	}
	return nil
}

func roleName(role string) string {
	if role == "" {
		return "PUBLIC"
	}
	return pgIdent(role)
}

func readGrants(ctx context.Context, tx queryer, oid int64) ([]Grant, error) {
	rows, err := tx.Query(ctx, selectGrants, pgx.NamedArgs{"oid": oid})
	if err != nil {
		return nil, fmt.Errorf("read grants: %w", err)
	}
	grants, err := pgx.CollectRows(rows, pgx.RowToStructByName[Grant])
	if err != nil {
		return nil, fmt.Errorf("read grants: %w", err)
	}
	return grants, nil
}

// openTables lets roles read the version's tables, but their owner, who may.
func openTables(ctx context.Context, tx pgx.Tx, change job.ViewChange, readers []string) error {
	for _, name := range change.Version().Tables() {
		target, err := readTarget(ctx, tx, change.View.Schema, name)
		if err != nil {
			return err
		}
		table := pgx.Identifier{change.View.Schema, name}.Sanitize()
		for _, role := range readers {
			if role == target.Owner {
				continue
			}
			if _, err := tx.Exec(ctx, fmt.Sprintf("GRANT SELECT ON %s TO %s", table, roleName(role))); err != nil {
				return refused(err)
			}
		}
	}
	return nil
}

// target is whose a version's table is, and whether row level security hides rows of it.
type target struct {
	Owner   string
	Guarded bool
}

func readTarget(ctx context.Context, tx queryer, schema, table string) (target, error) {
	rows, err := tx.Query(ctx, selectTarget, pgx.NamedArgs{"schema": schema, "table": table})
	if err != nil {
		return target{}, fmt.Errorf("read the owner of %s: %w", table, err)
	}
	out, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[target])
	if err != nil {
		return target{}, fmt.Errorf("read the owner of %s: %w", table, err)
	}
	return out, nil
}

// invoker reports whether the view checks the rights of its reader instead of its owner.
func (c *Contract) invoker() bool {
	for _, o := range c.Options {
		name, value, _ := strings.Cut(o, "=")
		if name == "security_invoker" {
			switch strings.ToLower(value) {
			case "true", "on", "1", "yes", "t", "y":
				return true
			}
		}
	}
	return false
}

// regrant makes the grants that the job file names again and takes back those that it named and no longer does, unless
// they stood before it or are not as it made them. It returns the grants as they are then, and those of the file that
// stood before.
func regrant(ctx context.Context, tx pgx.Tx, view job.ViewName, oid int64, before *Contract, spec []Grant) (grants,
	stood []Grant, err error,
) {
	if grants, err = readGrants(ctx, tx, oid); err != nil {
		return nil, nil, err
	}
	named := without(spec, before.Spec)
	stood = merge(both(before.Stood, spec), both(named, grants))
	for _, g := range both(without(without(before.Spec, spec), before.Stood), grants) {
		sql := fmt.Sprintf("REVOKE %s ON %s FROM %s", g.Privilege, pgx.Identifier{view.Schema, view.Name}.Sanitize(),
			roleName(g.Role))
		if _, err := tx.Exec(ctx, sql); err != nil {
			return nil, nil, refused(err)
		}
	}
	if err := grant(ctx, tx, view, named); err != nil {
		return nil, nil, err
	}
	grants, err = readGrants(ctx, tx, oid)
	return grants, stood, err
}

// both are those of a that b has too.
func both(a, b []Grant) []Grant { return without(a, without(a, b)) }

// without is a less those of b.
func without(a, b []Grant) []Grant {
	return slices.DeleteFunc(slices.Clone(a), func(g Grant) bool { return slices.Contains(b, g) })
}

// merge is a and what b has beside it.
func merge(a, b []Grant) []Grant { return append(slices.Clone(a), without(b, a)...) }
