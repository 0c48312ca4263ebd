package doctor

import (
	"context"
	"errors"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/render"
)

// archives notes what stops the archives, and those whose location this machine does not see.
func (e *examination) archives(ctx context.Context) {
	var store archive.Store
	locations := e.Locations(e.settings)
	if at := e.settings.Archive.Location; at != "" {
		e.location(ctx, locations, at)
	}
	all, err := store.Archives(ctx, e.pool)
	if err != nil {
		e.failed(ctx, "archives", err)
		return
	}
	for _, a := range all {
		if len(a.Jobs) > 0 {
			e.archive(ctx, store, locations, a)
		}
	}
}

// location notes whether the location of the settings can be reached.
func (e *examination) location(ctx context.Context, locations *archive.Locations, at string) {
	const check = "archive.location"
	l, err := locations.Open(at)
	if err == nil {
		err = l.Reach(ctx)
	}
	if err != nil {
		e.note(check, Failed, "kappactl context show", "%s", err)
		return
	}
	e.note(check, OK, "", "%s", at)
}

func (e *examination) archive(ctx context.Context, store archive.Store, locations *archive.Locations,
	a archive.Archive,
) {
	check := "archive of " + a.Topic
	found, err := store.Statuses(ctx, e.pool, a.Topic)
	if err != nil {
		e.failed(ctx, check, err)
		return
	}
	for _, s := range found {
		switch {
		case s.TopicID != a.TopicID.String():
		case s.State == archive.StateFault:
			e.note(check, Failed, e.ResumeArchive(s), "%s has stopped: %s", s.Of(), s.Detail)
			return
		case s.State == archive.StateError:
			e.note(check, Failed, "kappactl archive status "+a.Topic, "%s: %s", s.Of(), s.Detail)
			return
		case s.State == archive.StateLate:
			e.note(check, Warning, "shorten archive.roll.every, raise retention.ms, or add agents",
				"retention may delete records of %s before they are archived, from %s on", s.Of(), render.Time(s.Deadline))
			return
		}
	}
	if err := seen(ctx, locations, a); err != nil {
		next := "mount " + a.Location + " here, unless no agent runs on this machine"
		var s3 *archive.S3Error
		if errors.As(err, &s3) {
			next = "kappactl context show   # which settings are in force"
		}
		e.note(check, Warning, next, "seen from this machine: %s", err)
		return
	}
	e.note(check, OK, "", "%s at %s", render.Plural(int64(len(found)), "partition"), a.Location)
}

// seen returns why this machine cannot use the location of an archive; nil when it can.
func seen(ctx context.Context, locations *archive.Locations, a archive.Archive) error {
	l, err := locations.Open(a.Location)
	switch {
	case err != nil:
		return err
	case a.Marked:
		return archive.CheckMarker(ctx, l, a.Location, a)
	}
	return l.Reach(ctx)
}
