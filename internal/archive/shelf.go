package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/kappactl/kappactl/internal/pg"
)

// DefaultShelf is how many bytes of files a Shelf holds by default.
const DefaultShelf = 1 << 30

// Shelf holds copies of files of the archive in a temporary folder, for all readers of a process. It is safe for
// concurrent use. The copies have no name, so that the death of the process leaves none behind.
type Shelf struct {
	db     pg.DB
	at     *Locations
	folder string
	most   int64

	mu    sync.Mutex
	books map[string]*book // by location and name
	held  int64            // bytes of them
	takes int64
	waits int           // takes that wait for room
	freed chan struct{} // closed and replaced when a book is given back

	absent map[string]absence // files that were not there, by location and name
}

// book is a copy whose size and hash are those of the manifest.
type book struct {
	file  *os.File
	bytes int64
	users int
	taken int64         // number of the last take
	ready chan struct{} // closed when file or err is set
	err   error
}

// NewShelf returns a shelf that holds up to most bytes in folder (empty: the system's), and always one file.
func NewShelf(db pg.DB, at *Locations, folder string, most int64) *Shelf {
	if folder == "" {
		folder = os.TempDir()
	}
	return &Shelf{
		db: db, at: at, folder: folder, most: most, books: map[string]*book{}, absent: map[string]absence{},
		freed: make(chan struct{}),
	}
}

func shelved(f FileRow) string { return f.Location + "/" + f.Name }

// take returns the copy of a file, which is fetched at its first use. It waits while other files in use fill the shelf.
// give ends its use. Errors are those of Fetch and CheckMarker.
func (s *Shelf) take(ctx context.Context, f FileRow) (*book, error) {
	b, isNew, err := s.reserve(ctx, f)
	if err != nil {
		return nil, err
	}
	if isNew {
		if b.file, b.err = s.fetch(ctx, f); b.err == nil {
			s.appeared(f)
		}
		close(b.ready)
	}
	select {
	case <-b.ready:
	case <-ctx.Done():
		s.give(f, b)
		return nil, ctx.Err()
	}
	if b.err == nil {
		return b, nil
	}
	s.give(f, b)
	if !isNew && errors.Is(b.err, context.Canceled) && ctx.Err() == nil { // that of the reader that fetched it
		return s.take(ctx, f)
	}
	return nil, b.err
}

// Copy is a verified copy of a file, which is fetched at its first use. It waits while other files in use fill the
// shelf. give ends its use. Errors are those of Fetch and CheckMarker.
func (s *Shelf) Copy(ctx context.Context, f FileRow) (_ *io.SectionReader, give func(), err error) {
	b, err := s.take(ctx, f)
	if err != nil {
		return nil, nil, err
	}
	return b.section(), func() { s.give(f, b) }, nil
}

// reserve finds or adds the book, with one more user.
func (s *Shelf) reserve(ctx context.Context, f FileRow) (b *book, isNew bool, err error) {
	for {
		s.mu.Lock()
		s.takes++
		b, found := s.books[shelved(f)]
		if !found && s.room(f.Bytes) {
			b = &book{bytes: f.Bytes, ready: make(chan struct{})}
			s.books[shelved(f)] = b
			s.held += f.Bytes
			isNew = true
		}
		freed := s.freed
		if b != nil {
			b.users++
			b.taken = s.takes
		} else {
			s.waits++
		}
		s.mu.Unlock()
		if b != nil {
			return b, isNew, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			err = ctx.Err()
		}
		s.mu.Lock()
		s.waits--
		s.mu.Unlock()
		if err != nil {
			return nil, false, err
		}
	}
}

// room removes books that nobody uses, those taken longest ago first, until so many bytes fit. It reports whether they
// do.
func (s *Shelf) room(bytes int64) bool {
	for s.held > 0 && s.held+bytes > s.most {
		oldest := ""
		for name, b := range s.books {
			if b.users == 0 && (oldest == "" || b.taken < s.books[oldest].taken) {
				oldest = name
			}
		}
		if oldest == "" {
			return false
		}
		s.remove(oldest)
	}
	return true
}

func (s *Shelf) remove(name string) {
	b := s.books[name]
	delete(s.books, name)
	s.held -= b.bytes
	if b.file != nil {
		_ = b.file.Close() // it was only read
	}
}

// give ends a use of a book. One that could not be fetched is forgotten with its last use.
func (s *Shelf) give(f FileRow, b *book) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.users--
	if b.users == 0 && b.err != nil {
		s.remove(shelved(f))
	}
	close(s.freed)
	s.freed = make(chan struct{})
}

// fetch copies a file into a file without a name.
func (s *Shelf) fetch(ctx context.Context, f FileRow) (_ *os.File, err error) {
	l, err := s.at.Open(f.Location)
	if err != nil {
		return nil, err
	}
	if err := CheckMarker(ctx, l, f.Location, Archive{ID: f.Archive, Topic: f.Topic, TopicID: f.TopicID}); err != nil {
		return nil, err
	}
	to, err := os.CreateTemp(s.folder, "archived-*.parquet")
	if err != nil {
		return nil, fmt.Errorf("copy archive file %s: %w", shelved(f), err)
	}
	if err = os.Remove(to.Name()); err == nil {
		err = Fetch(ctx, l, f, to)
	}
	if err != nil {
		return nil, errors.Join(err, to.Close())
	}
	return to, nil
}

// section is the whole copy, for one more reader of it.
func (b *book) section() *io.SectionReader { return io.NewSectionReader(b.file, 0, b.bytes) }
