package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// markerName is the marker's name in the folder of its topic.
const markerName = "kappactl-archive.json"

// marker is what the marker file of an archive holds.
type marker struct {
	Archive string `json:"archive"` // its id
	Cluster string `json:"cluster"`
	Topic   string `json:"topic"`
	TopicID string `json:"topic_id"`
}

// MarkerError is a location that does not hold the archive that it should.
type MarkerError struct {
	Location string
	Topic    string
	Found    string // the id of another archive; empty: there is no marker
	Want     string
}

func (e *MarkerError) Error() string {
	if e.Found == "" {
		return fmt.Sprintf("%s has no marker of the archive of topic %s: a mount that is gone, another machine's folder or another bucket", e.Location, e.Topic)
	}
	return fmt.Sprintf("%s belongs to archive %s, the archive of topic %s is %s: another installation writes there",
		e.Location, e.Found, e.Topic, e.Want)
}

// CheckMarker reads the marker of an archive at a location: a *MarkerError when it is not there or another archive's.
func CheckMarker(ctx context.Context, l Location, location string, a Archive) error {
	found, err := readMarker(ctx, l, a)
	switch {
	case err != nil:
		return fmt.Errorf("read the marker of the archive at %s: %w", location, err)
	case found != a.ID:
		return &MarkerError{Location: location, Topic: a.Topic, Found: found, Want: a.ID}
	}
	return nil
}

// readMarker returns the id in the marker, empty when there is none.
func readMarker(ctx context.Context, l Location, a Archive) (_ string, err error) {
	r, err := l.Open(ctx, Folder(a.Topic, a.TopicID)+"/"+markerName)
	if Missing(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var m marker
	if err := json.NewDecoder(io.LimitReader(r, 64<<10)).Decode(&m); err != nil {
		return "", err
	}
	return m.Archive, nil
}

// Mark writes the marker of an archive at its first use of a location, unless it is there. Another archive's marker is
// a *MarkerError.
func Mark(ctx context.Context, l Location, temp string, a Archive) (err error) {
	found, err := readMarker(ctx, l, a)
	switch {
	case err != nil:
		return fmt.Errorf("read the marker of the archive at %s: %w", a.Location, err)
	case found == a.ID:
		return nil
	case found != "":
		return &MarkerError{Location: a.Location, Topic: a.Topic, Found: found, Want: a.ID}
	}
	text, err := json.Marshal(marker{Archive: a.ID, Cluster: a.Cluster, Topic: a.Topic, TopicID: a.TopicID.String()})
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(temp, "marker-*.json")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := l.Put(ctx, Folder(a.Topic, a.TopicID)+"/"+markerName, f.Name()); err != nil {
		return fmt.Errorf("write the marker of the archive at %s: %w", a.Location, err)
	}
	return nil
}
