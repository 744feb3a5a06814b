"""`python -m topstory.cli`, for when the script `topstory` is not on the path."""

from topstory.cli import main

if __name__ == "__main__":
    main()
