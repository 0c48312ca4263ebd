package archive

// Waiting is how many readers wait for room.
func (s *Shelf) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waits
}

// MergeableOf chooses the files to merge from the newest ones.
func MergeableOf(newest []FileRow, location string, size int64) []FileRow {
	return mergeable(newest, location, size)
}
