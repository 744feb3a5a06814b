"""The contract: what is asked, what is answered, what is refused."""
