"""The samples of our guides that concern reading, analysing and reviewing playbooks, exactly as printed."""

ALL_USER_PLAYBOOKS = """
# Retrieve all user playbooks
response = client.get_user_playbooks()

print(f"Total user playbooks: {len(response.user_playbooks)}")

for playbook in response.user_playbooks:
    print(f"\\nPlaybook ID: {playbook.user_playbook_id}")
    print(f"Playbook Name: {playbook.playbook_name}")
    print(f"Agent Version: {playbook.agent_version}")
    print(f"Request ID: {playbook.request_id}")
    print(f"Content: {playbook.content}")
    print("-" * 50)
"""

USER_PLAYBOOKS_BY_NAME = """
# Get user playbooks for a specific playbook type
response = client.get_user_playbooks(
    playbook_name="response_quality",
    limit=100
)

print(f"Found {len(response.user_playbooks)} response quality playbook entries")

# Analyze the entries
quality_scores = []
for playbook in response.user_playbooks:
    print(f"Request: {playbook.request_id}")
    print(f"Content: {playbook.content[:200]}...")
    print("-" * 30)
"""

USER_PLAYBOOKS_BY_STATUS = """
# Get only current (active) user playbooks
current_playbooks = client.get_user_playbooks(
    status_filter=[None],  # None represents CURRENT status
    limit=50
)

# Get pending user playbooks (from rerun operations)
pending_playbooks = client.get_user_playbooks(
    status_filter=[Status.PENDING],
    limit=50
)

# Get archived user playbooks
archived_playbooks = client.get_user_playbooks(
    status_filter=[Status.ARCHIVED],
    limit=50
)

print(f"Current: {len(current_playbooks.user_playbooks)}")
print(f"Pending: {len(pending_playbooks.user_playbooks)}")
print(f"Archived: {len(archived_playbooks.user_playbooks)}")
"""

ALL_AGENT_PLAYBOOKS = """
# Retrieve agent playbooks
response = client.get_agent_playbooks()

print(f"Total agent playbooks: {len(response.agent_playbooks)}")

for playbook in response.agent_playbooks:
    print(f"\\nPlaybook ID: {playbook.agent_playbook_id}")
    print(f"Name: {playbook.playbook_name}")
    print(f"Agent Version: {playbook.agent_version}")
    print(f"Status: {playbook.playbook_status.value}")
    print(f"Content: {playbook.content}")
    print(f"Metadata: {playbook.playbook_metadata}")
    print("-" * 50)
"""

AGENT_PLAYBOOKS_BY_NAME = """
# Get agent playbooks for a specific type
response = client.get_agent_playbooks(
    playbook_name="pain_points",
    limit=50
)

print("Aggregated Pain Points:")
for playbook in response.agent_playbooks:
    print(f"\\n[{playbook.playbook_status.value}] {playbook.content}")
"""

CACHE = """
# First call - fetches from API
playbooks = client.get_agent_playbooks(playbook_name="response_quality")

# Second call with same params - uses cache
cached_playbooks = client.get_agent_playbooks(playbook_name="response_quality")

# Force refresh to bypass cache
fresh_playbooks = client.get_agent_playbooks(
    playbook_name="response_quality",
    force_refresh=True
)
"""

VOLUME = """
from datetime import datetime
from collections import defaultdict

# Get all user playbooks
response = client.get_user_playbooks(limit=500)

# Analyze by playbook type
playbook_by_type = defaultdict(list)
for playbook in response.user_playbooks:
    playbook_by_type[playbook.playbook_name].append(playbook)

print("Playbook Distribution by Type:")
for playbook_name, entries in sorted(
    playbook_by_type.items(), key=lambda x: len(x[1]), reverse=True
):
    print(f"  {playbook_name}: {len(entries)} entries")
"""

VERSIONS = """
# Compare playbook entries across agent versions
version_playbooks = defaultdict(list)

response = client.get_user_playbooks(
    playbook_name="response_quality",
    limit=500
)

for entry in response.user_playbooks:
    version_playbooks[entry.agent_version].append(entry)

print("Playbook Count by Agent Version:")
for version, entries in sorted(version_playbooks.items()):
    print(f"  {version}: {len(entries)} entries")

# Identify versions with the most playbook entries
most_playbooks_version = max(version_playbooks.items(), key=lambda x: len(x[1]))
print(f"\\nMost entries: {most_playbooks_version[0]} ({len(most_playbooks_version[1])} entries)")
"""

TEMPORAL = """
from datetime import datetime, timedelta

response = client.get_user_playbooks(limit=1000)

# Group by date
daily_playbooks = defaultdict(int)
for playbook in response.user_playbooks:
    date = datetime.fromtimestamp(playbook.created_at).date()
    daily_playbooks[date] += 1

print("Daily Playbook Volume (last 7 days):")
today = datetime.now().date()
for i in range(7):
    date = today - timedelta(days=i)
    count = daily_playbooks.get(date, 0)
    bar = "#" * (count // 5)  # Simple visualization
    print(f"  {date}: {count:4d} {bar}")
"""

STATUSES = """
# Analyze agent playbook approval rates
response = client.get_agent_playbooks(limit=200)

status_counts = defaultdict(int)
for playbook in response.agent_playbooks:
    status_counts[playbook.playbook_status.value] += 1

print("Aggregated Playbook Status Distribution:")
total = len(response.agent_playbooks)
for status, count in status_counts.items():
    percentage = (count / total * 100) if total > 0 else 0
    print(f"  {status}: {count} ({percentage:.1f}%)")
"""

HEALTH = '''
def check_playbook_health(client, min_daily_playbookss=10):
    """
    Monitor playbook collection health.

    Args:
        client: ReflexioClient instance
        min_daily_playbookss: Minimum expected daily playbook entries
    """
    from datetime import datetime, timedelta

    response = client.get_user_playbooks(limit=100)

    # Check if we're collecting playbook entries
    if not response.user_playbooks:
        print("WARNING: No user playbooks found!")
        return False

    # Check recent activity
    today = datetime.now()
    yesterday = today - timedelta(days=1)
    yesterday_ts = int(yesterday.timestamp())

    recent_count = sum(
        1 for f in response.user_playbooks if f.created_at > yesterday_ts
    )

    if recent_count < min_daily_playbookss:
        print(f"WARNING: Only {recent_count} playbook entries in last 24h (expected {min_daily_playbookss}+)")
        return False

    print(f"Playbook health OK: {recent_count} playbook entries in last 24h")
    return True


# Run health check
check_playbook_health(client)
'''

REPORT = '''
def generate_playbook_report(client, playbook_name=None, days=7):
    """
    Generate a comprehensive playbook report.

    Args:
        client: ReflexioClient instance
        playbook_name: Optional filter by playbook type
        days: Number of days to include in report
    """
    from datetime import datetime, timedelta
    from collections import defaultdict

    # Get user playbooks
    raw_response = client.get_user_playbooks(
        limit=1000,
        playbook_name=playbook_name
    )

    # Get agent playbooks
    agg_response = client.get_agent_playbooks(
        limit=200,
        playbook_name=playbook_name
    )

    # Calculate metrics
    cutoff = datetime.now() - timedelta(days=days)
    cutoff_ts = int(cutoff.timestamp())

    recent_raw = [f for f in raw_response.user_playbooks if f.created_at > cutoff_ts]

    # Version breakdown
    versions = defaultdict(int)
    for f in recent_raw:
        versions[f.agent_version] += 1

    # Print report
    print(f"\\n{'='*60}")
    print(f"PLAYBOOK REPORT - Last {days} Days")
    if playbook_name:
        print(f"Filtered by: {playbook_name}")
    print(f"{'='*60}")

    print(f"\\nUSER PLAYBOOKS:")
    print(f"  Total (all time): {len(raw_response.user_playbooks)}")
    print(f"  Recent ({days} days): {len(recent_raw)}")
    print(f"  Daily average: {len(recent_raw) / days:.1f}")

    print(f"\\nAGENT PLAYBOOKS:")
    print(f"  Total: {len(agg_response.agent_playbooks)}")

    status_counts = defaultdict(int)
    for f in agg_response.agent_playbooks:
        status_counts[f.playbook_status.value] += 1
    for status, count in status_counts.items():
        print(f"  {status}: {count}")

    print(f"\\nBY AGENT VERSION:")
    for version, count in sorted(versions.items(), key=lambda x: x[1], reverse=True):
        print(f"  {version}: {count}")

    print(f"\\n{'='*60}\\n")


# Generate report
generate_playbook_report(client, playbook_name="response_quality", days=30)
'''

ONE_VERSION = '''
def analyze_version_playbooks(client, agent_version):
    """
    Deep analysis of playbook entries for a specific agent version.

    Args:
        client: ReflexioClient instance
        agent_version: Agent version to analyze
    """
    # Get all user playbooks (we'll filter client-side for version)
    response = client.get_user_playbooks(limit=500)

    # Filter by version
    version_playbooks = [
        f for f in response.user_playbooks if f.agent_version == agent_version
    ]

    if not version_playbooks:
        print(f"No playbook entries found for version {agent_version}")
        return

    print(f"\\nAnalysis for Agent Version: {agent_version}")
    print(f"Total entries: {len(version_playbooks)}")

    # Group by playbook type
    by_type = defaultdict(list)
    for f in version_playbooks:
        by_type[f.playbook_name].append(f)

    print("\\nBreakdown by playbook type:")
    for playbook_type, entries in by_type.items():
        print(f"\\n  {playbook_type}: {len(entries)} entries")

        # Show sample playbook content
        if entries:
            sample = entries[0]
            content_preview = sample.content[:150]
            print(f"    Sample: {content_preview}...")


# Analyze specific version
analyze_version_playbooks(client, "v2.1.0")
'''

IMPROVEMENT = '''
def identify_improvement_areas_from_playbooks(client, top_n=5):
    """
    Identify top areas for agent improvement based on playbook data.

    Args:
        client: ReflexioClient instance
        top_n: Number of top issues to return
    """
    # Get agent playbooks
    response = client.get_agent_playbooks(limit=100)

    # Focus on approved playbooks (validated insights)
    approved = [
        f for f in response.agent_playbooks
        if f.playbook_status == PlaybookStatus.APPROVED
    ]

    print(f"\\nTop {top_n} Validated Improvement Areas:")
    print("-" * 50)

    for i, playbook in enumerate(approved[:top_n], 1):
        print(f"\\n{i}. [{playbook.playbook_name}]")
        print(f"   {playbook.content}")
        if playbook.playbook_metadata:
            print(f"   Metadata: {playbook.playbook_metadata}")


# Identify improvement areas
identify_improvement_areas_from_playbooks(client, top_n=5)
'''

AB_TEST = '''
def compare_versions_playbooks(client, version_a, version_b, playbook_name):
    """
    Compare playbook entries between two agent versions for A/B testing.

    Args:
        client: ReflexioClient instance
        version_a: First agent version
        version_b: Second agent version
        playbook_name: Playbook type to compare
    """
    # Get user playbooks for the specific playbook type
    response = client.get_user_playbooks(
        playbook_name=playbook_name,
        limit=500
    )

    # Split by version
    playbooks_a = [f for f in response.user_playbooks if f.agent_version == version_a]
    playbooks_b = [f for f in response.user_playbooks if f.agent_version == version_b]

    print(f"\\nA/B Test Comparison: {playbook_name}")
    print(f"{'='*50}")
    print(f"\\n{version_a}:")
    print(f"  Total entries: {len(playbooks_a)}")

    print(f"\\n{version_b}:")
    print(f"  Total entries: {len(playbooks_b)}")

    # Calculate playbook entries per request (proxy for extraction rate)
    if playbooks_a:
        unique_requests_a = len(set(f.request_id for f in playbooks_a))
        print(f"\\n{version_a} unique requests: {unique_requests_a}")

    if playbooks_b:
        unique_requests_b = len(set(f.request_id for f in playbooks_b))
        print(f"{version_b} unique requests: {unique_requests_b}")

    return {
        "version_a": {"version": version_a, "count": len(playbooks_a)},
        "version_b": {"version": version_b, "count": len(playbooks_b)},
    }


# Compare two versions
results = compare_versions_playbooks(client, "v2.0.0", "v2.1.0", "response_quality")
'''

WEEKLY_REVIEW = '''
def weekly_playbook_review(client):
    """Implement a weekly playbook review process."""

    # Get pending agent playbooks for review
    response = client.get_agent_playbooks(
        status_filter=[Status.PENDING],
        limit=50
    )

    print(f"Playbooks pending review: {len(response.agent_playbooks)}")

    for playbook in response.agent_playbooks:
        print(f"\\n[{playbook.playbook_name}] {playbook.content}")
        print(f"Agent Version: {playbook.agent_version}")
        # In production, you'd have a UI or API to approve/reject


# Run weekly
weekly_playbook_review(client)
'''
