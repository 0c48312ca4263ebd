package reason

import "time"

// Codes of what people do with the archive of a topic.
const (
	CodeArchiveGapAccepted Code = "archive_gap_accepted"
	CodeArchiveResumed     Code = "archive_resumed"
	CodeArchivePruned      Code = "archive_pruned"
	CodeArchiveAdopted     Code = "archive_adopted"
	CodeArchiveRebuilt     Code = "archive_rebuilt"
)

func archiveTexts() map[Code]string {
	return map[Code]string{
		CodeArchiveGapAccepted: `the archive goes on without {{text .gap}}: it lacks these offsets`,
		CodeArchiveResumed:     `the archive of {{text .topic}} tries again: {{plural .partitions "partition" "partitions"}}`,
		CodeArchivePruned: `{{plural .files "file" "files"}} with records from before {{text .before}} removed from the archive ` +
			`of {{text .topic}}`,
		CodeArchiveAdopted: `the files at {{text .location}} are taken as the archive of {{text .topic}}`,
		CodeArchiveRebuilt: `{{plural .files "file was" "files were"}} put back into the archive of {{text .topic}}`,
	}
}

// ArchiveGapAccepted is a range of offsets that the archive of a topic lacks.
func ArchiveGapAccepted(gap string) Reason { return Reason{CodeArchiveGapAccepted, Args{"gap": gap}} }

// ArchiveResumed is partitions of an archive that try again after a fault.
func ArchiveResumed(topic string, partitions int) Reason {
	return Reason{CodeArchiveResumed, Args{"topic": topic, "partitions": partitions}}
}

// ArchivePruned is old files that were removed from an archive.
func ArchivePruned(topic string, files int64, before time.Time) Reason {
	return Reason{CodeArchivePruned, Args{"topic": topic, "files": files, "before": Time(before)}}
}

// ArchiveAdopted is files of another database's archive that became this one's.
func ArchiveAdopted(topic, location string) Reason {
	return Reason{CodeArchiveAdopted, Args{"topic": topic, "location": location}}
}

// ArchiveRebuilt is files that were put back into the manifest.
func ArchiveRebuilt(topic string, files int) Reason {
	return Reason{CodeArchiveRebuilt, Args{"topic": topic, "files": files}}
}
