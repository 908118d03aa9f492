def run(requests):
    return []
