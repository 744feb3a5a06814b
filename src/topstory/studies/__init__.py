"""The paper's experiments, end to end."""

from topstory.studies.cautions import StudyWarning
from topstory.studies.findings import Study
from topstory.studies.studying import study

__all__ = ["Study", "StudyWarning", "study"]
