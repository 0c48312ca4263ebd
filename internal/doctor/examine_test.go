package doctor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/reprocess/status"
)

// examined returns the findings by what was examined, with brokers that cannot be reached.
func examined(t *testing.T, d Deps) map[string]Finding {
	t.Helper()
	d.Brokers = func(context.Context, config.Settings) (kafka.Config, error) {
		return kafka.Config{}, errors.New("no brokers")
	}
	d.Explain = func(_ context.Context, err error) (cause, next string) { return err.Error(), "look there" }
	d.Locations = func(config.Settings) *archive.Locations { return &archive.Locations{} }
	d.Now = time.Now
	d.TimeLimit = context.DeadlineExceeded
	out := map[string]Finding{}
	for _, f := range Examine(t.Context(), d) {
		out[f.Check] = f
	}
	return out
}

func TestSchemasOfAKilledComparisonAreFoundAndThoseOfARunningOneAreNot(t *testing.T) {
	t.Parallel()
	pool, dsn := pgtest.New(t)
	for _, name := range []string{"kappactl_compare_aa", "kappactl_compare_aa_views", "kappactl_compare_bb", "kappactl_compare_bb_views"} {
		if _, err := pool.Exec(t.Context(), "CREATE SCHEMA "+name); err != nil {
			t.Fatal(err)
		}
	}
	running, err := pg.Open(t.Context(), pg.Config{DSN: dsn, Application: "kappactl_compare_bb"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(running.Close)
	got := examined(t, Deps{
		Settings: func() (config.Settings, error) { return config.Settings{}, nil },
		Database: func(ctx context.Context, _ config.Settings) (*pg.Pool, error) {
			return pg.Open(ctx, pg.Config{DSN: dsn})
		},
		Jobs: func(context.Context, *pg.Pool) ([]status.Job, error) { return nil, nil },
	})["leftovers"]
	const next = `DROP SCHEMA "kappactl_compare_aa" CASCADE; DROP SCHEMA "kappactl_compare_aa_views" CASCADE;`
	if got.Health != Warning || got.Next == nil || *got.Next != next {
		t.Errorf("%+v, want %s", got, next)
	}
}

func TestWithoutBrokersTheDatabaseIsExaminedAllTheSame(t *testing.T) {
	t.Parallel()
	_, dsn := pgtest.New(t)
	got := examined(t, Deps{
		Settings: func() (config.Settings, error) { return config.Settings{Context: "there"}, nil },
		Database: func(ctx context.Context, _ config.Settings) (*pg.Pool, error) {
			return pg.Open(ctx, pg.Config{DSN: dsn})
		},
		Jobs: func(context.Context, *pg.Pool) ([]status.Job, error) {
			of := status.Job{}
			of.ViewName.Schema = "elsewhere"
			return []status.Job{of}, nil
		},
	})
	for check, want := range map[string]Health{
		"settings": OK, "brokers": Failed, "database": OK, "pooler": OK, "clock": OK, "database TLS": OK,
		"control schema": OK, "agents": Failed,
		"schema public": OK, "schema elsewhere": Warning,
	} {
		if got[check].Health != want {
			t.Errorf("%s: %+v, want %s", check, got[check], want)
		}
	}
	if f := got["schema elsewhere"]; f.Next == nil || *f.Next != "CREATE SCHEMA "+pg.Ident("elsewhere") {
		t.Errorf("a schema that is missing: %+v", f)
	}
	if f := got["settings"]; !strings.Contains(f.Detail, "context there") {
		t.Errorf("%+v", f)
	}
}

func TestWhatNeedsTheDatabaseIsLeftOutWithoutIt(t *testing.T) {
	got := examined(t, Deps{
		Settings: func() (config.Settings, error) { return config.Settings{}, nil },
		Database: func(context.Context, config.Settings) (*pg.Pool, error) { return nil, errors.New("no database") },
	})
	if f := got["database"]; len(got) != 3 || f.Health != Failed || f.Detail != "no database" || *f.Next != "look there" {
		t.Errorf("%+v", got)
	}
	got = examined(t, Deps{Settings: func() (config.Settings, error) { return config.Settings{}, errors.New("bad file") }})
	if len(got) != 1 || got["settings"].Health != Failed {
		t.Errorf("without settings: %+v", got)
	}
}
