"""Is a log fit for replay?"""
