"""The paper's experiments, end to end."""

from topstory.studies.logs.warnings import StudyWarning
from topstory.studies.result import Study
from topstory.studies.study import study

__all__ = ["Study", "StudyWarning", "study"]
