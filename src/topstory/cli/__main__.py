"""`python -m topstory.cli`, where the command itself is not on the path."""

from topstory.cli import main

if __name__ == "__main__":
    main()
