"""The samples of our guides that concern set-up, publishing, configuration and erasing, exactly as printed."""

# ruff: noqa: E501  printed lines are as long as they are printed

SETUP = """
from reflexio import ReflexioClient

client = ReflexioClient()  # uses REFLEXIO_API_KEY env var
# Self-hosted: client = ReflexioClient(url_endpoint="http://localhost:8081")
"""

BASIC_CONFIGURATION = '''
# Configure playbook extraction for customer satisfaction
satisfaction_playbook = {
    "playbook_name": "customer_satisfaction",
    "playbook_definition_prompt": """
    Analyze the user's response to determine their satisfaction level with the agent's help.
    Look for:
    - Explicit expressions of satisfaction or frustration
    - Whether the user's question was answered completely
    - Signs of confusion or repeated questions
    - Positive acknowledgments like "thanks" or "that's helpful"
    """
}

# Apply configuration
config = client.get_config()
config.playbook_configs = [satisfaction_playbook]
client.set_config(config)
'''

MULTIPLE_TYPES = '''
# Configure multiple playbook types for comprehensive analysis
playbook_configs = [
    {
        "playbook_name": "response_quality",
        "playbook_definition_prompt": """
        Evaluate the quality of the agent's responses:
        - Accuracy: Was the information provided correct?
        - Completeness: Did it fully address the user's question?
        - Clarity: Was the response easy to understand?
        - Relevance: Was the response on-topic?
        """,
        "metadata_definition_prompt": """
        Extract metadata:
        - quality_score: 1-5 rating
        - issues_found: list of specific problems
        - strengths: list of positive aspects
        """
    },
    {
        "playbook_name": "task_completion",
        "playbook_definition_prompt": """
        Determine if the agent successfully helped the user complete their intended task:
        - Did the user achieve their goal?
        - Were there any blockers or failures?
        - How many attempts were needed?
        """,
        "metadata_definition_prompt": """
        Extract metadata:
        - task_completed: boolean
        - attempts_required: number
        - blocking_issues: list of issues that prevented completion
        """
    },
    {
        "playbook_name": "user_sentiment",
        "playbook_definition_prompt": """
        Analyze the user's emotional state throughout the conversation:
        - Starting sentiment (neutral, positive, negative, frustrated)
        - Ending sentiment
        - Key moments that changed sentiment
        """,
        "metadata_definition_prompt": """
        Extract metadata:
        - initial_sentiment: string
        - final_sentiment: string
        - sentiment_change: improved/unchanged/worsened
        """
    }
]

config = client.get_config()
config.playbook_configs = playbook_configs
client.set_config(config)
'''

AGGREGATION = '''
# Configure how user playbooks are aggregated into agent playbooks
aggregator_config = {
    "min_cluster_size": 5,  # Minimum user playbooks before aggregation
    "reaggregation_trigger_count": 10  # Re-aggregate after this many new playbooks
}

# Apply aggregator to specific playbook type
playbook_with_aggregator = {
    "playbook_name": "pain_points",
    "playbook_definition_prompt": """
    Identify user pain points and frustrations:
    - Features that don't work as expected
    - Missing capabilities users ask for
    - Confusing interactions or workflows
    - Repeated user complaints
    """,
    "playbook_aggregator_config": aggregator_config
}

config = client.get_config()
config.playbook_configs = [playbook_with_aggregator]
client.set_config(config)
'''

PUBLISH = """
# Publish interaction with agent version for playbook tracking
response = client.publish_interaction(
    user_id="user_123",
    interactions=[
        {"role": "User", "content": "How do I reset my password?"},
        {"role": "Agent", "content": "To reset your password, go to Settings > Security > Reset Password. You'll receive an email with a reset link."},
        {"role": "User", "content": "Perfect, that worked! Thanks!"}
    ],
    source="support_chat",
    agent_version="v2.1.0",  # Important for tracking playbook entries by version
    wait_for_response=True,
)
"""

MULTI_TURN = """
# Complex multi-turn conversation for richer playbook extraction
conversation = [
    {"role": "User", "content": "I need help with my order #12345"},
    {"role": "Agent", "content": "I'd be happy to help with order #12345. Let me look that up for you."},
    {"role": "User", "content": "It says delivered but I never received it"},
    {"role": "Agent", "content": "I see the tracking shows it was delivered yesterday. Let me check with the carrier for more details. Can you confirm your delivery address?"},
    {"role": "User", "content": "123 Main St, Apt 4B"},
    {"role": "Agent", "content": "The package was left at the building's front desk. Could you check there?"},
    {"role": "User", "content": "Found it! Thank you so much for your help!"}
]

client.publish_interaction(
    user_id="customer_456",
    interactions=conversation,
    source="order_support",
    agent_version="v2.1.0",
    session_id="order_issues_batch_001",
    wait_for_response=True,
)
"""

EXPERT = """
# Publish interactions with expert ideal responses
# Reflexio automatically detects expert_content and uses a specialized extraction pipeline
client.publish_interaction(
    user_id="user_789",
    interactions=[
        {"role": "User", "content": "How do I reset my password?"},
        {
            "role": "Agent",
            "content": "Go to Settings and click Reset Password.",
            "expert_content": (
                "To reset your password: 1) Go to Settings > Security > Reset Password. "
                "2) Enter your current password for verification. "
                "3) Choose a new password (minimum 12 characters, must include uppercase, "
                "lowercase, number, and special character). "
                "4) You'll receive a confirmation email. If you've forgotten your current "
                "password, use the 'Forgot Password' link on the login page instead."
            )
        }
    ],
    source="expert_review",
    agent_version="v2.1.0",
    session_id="expert_batch_001",
    wait_for_response=True,
)
"""

ECOMMERCE = '''
ecommerce_configs = [
    {
        "playbook_name": "order_resolution",
        "playbook_definition_prompt": """
        Evaluate how effectively the agent resolved order-related issues:
        - Order status inquiries
        - Shipping problems
        - Return/refund requests
        - Payment issues
        """,
        "playbook_aggregator_config": {
            "min_cluster_size": 3,
            "reaggregation_trigger_count": 5
        }
    },
    {
        "playbook_name": "product_recommendations",
        "playbook_definition_prompt": """
        Assess the quality of product recommendations:
        - Relevance to user needs
        - Price appropriateness
        - Availability of recommended items
        - User acceptance of recommendations
        """
    },
    {
        "playbook_name": "checkout_assistance",
        "playbook_definition_prompt": """
        Evaluate help provided during checkout:
        - Promo code application
        - Payment method guidance
        - Shipping option explanation
        - Cart management assistance
        """
    }
]

config = client.get_config()
config.playbook_configs = ecommerce_configs
client.set_config(config)
'''

TECHNICAL = '''
tech_support_configs = [
    {
        "playbook_name": "troubleshooting_effectiveness",
        "playbook_definition_prompt": """
        Evaluate the agent's troubleshooting capabilities:
        - Problem identification accuracy
        - Solution relevance
        - Step-by-step guidance clarity
        - Issue resolution rate
        """,
        "metadata_definition_prompt": """
        Extract:
        - problem_category: type of technical issue
        - steps_provided: number of troubleshooting steps
        - resolved: boolean
        - escalation_needed: boolean
        """
    },
    {
        "playbook_name": "technical_accuracy",
        "playbook_definition_prompt": """
        Assess the technical accuracy of agent responses:
        - Correct terminology usage
        - Accurate system information
        - Valid configuration guidance
        - Appropriate security practices
        """
    },
    {
        "playbook_name": "documentation_referrals",
        "playbook_definition_prompt": """
        Evaluate how well the agent references documentation:
        - Appropriate documentation links
        - Relevant knowledge base articles
        - Accurate API documentation references
        - Helpful tutorial suggestions
        """
    }
]

config = client.get_config()
config.playbook_configs = tech_support_configs
client.set_config(config)
'''

HEALTHCARE = '''
healthcare_configs = [
    {
        "playbook_name": "symptom_understanding",
        "playbook_definition_prompt": """
        Evaluate the agent's understanding of reported symptoms:
        - Accurate symptom capture
        - Appropriate follow-up questions
        - Proper symptom categorization
        - Recognition of urgency levels
        """
    },
    {
        "playbook_name": "guidance_appropriateness",
        "playbook_definition_prompt": """
        Assess the appropriateness of health guidance:
        - Safe general health information
        - Appropriate disclaimers
        - Proper referral to professionals
        - Avoidance of medical diagnosis
        """
    },
    {
        "playbook_name": "empathy_and_support",
        "playbook_definition_prompt": """
        Evaluate emotional support provided:
        - Empathetic responses
        - Patient communication style
        - Acknowledgment of concerns
        - Supportive language use
        """
    }
]

config = client.get_config()
config.playbook_configs = healthcare_configs
client.set_config(config)
'''

GOOD_DEFINITION = '''
# Good: Specific, measurable criteria
good_config = {
    "playbook_name": "response_helpfulness",
    "playbook_definition_prompt": """
    Rate the helpfulness of the agent's response:
    - Does it directly answer the user's question?
    - Is the information actionable?
    - Are next steps clear?
    - Did the user express satisfaction?
    """
}

# Avoid: Vague definitions
# bad_config = {
#     "playbook_name": "quality",
#     "playbook_definition_prompt": "Is the response good?"
# }
'''

THRESHOLDS = """
# For high-volume use cases
high_volume_config = {
    "min_cluster_size": 10,  # Need enough data for patterns
    "reaggregation_trigger_count": 20  # Update frequently with new data
}

# For low-volume or critical playbook entries
low_volume_config = {
    "min_cluster_size": 3,  # Aggregate sooner
    "reaggregation_trigger_count": 5  # Refresh more often
}
"""

CLEAR_USER_DATA = """
response = client.clear_user_data(user_id="user_123")
print(response.deleted_counts)
"""

RERUN_PROFILES = """
response = client.rerun_profile_generation(
    user_id="user_123",
    wait_for_response=True
)
"""

MANUAL_PROFILES = """
# Force regeneration for a user (CURRENT status, fire-and-forget)
client.manual_profile_generation(user_id="user_123")

# Regenerate for all users with specific source
client.manual_profile_generation(source="chat")

# Legacy clients may still send extractor_names, but they no longer select extractors.
client.manual_profile_generation(user_id="user_123")
"""

RERUN_PLAYBOOKS = """
response = client.rerun_playbook_generation(
    agent_version="v2.1.0",
    wait_for_response=True
)
"""

MANUAL_PLAYBOOKS = """
# Force regeneration for an agent version (CURRENT status, fire-and-forget)
client.manual_playbook_generation(agent_version="v2.1.0")

# Regenerate with specific source filter
client.manual_playbook_generation(
    agent_version="v2.1.0",
    source="chat"
)

# Legacy clients may still send playbook_name, but it no longer selects a playbook config.
client.manual_playbook_generation(agent_version="v2.1.0")
"""

UPGRADE_PROFILES = """
response = client.upgrade_profiles(user_id="user_123")
"""

UPGRADE_PLAYBOOKS = """
response = client.upgrade_user_playbooks(agent_version="v2.1.0")
"""
