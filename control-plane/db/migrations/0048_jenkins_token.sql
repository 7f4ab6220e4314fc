-- People replace the API token of a controller. What the last polls found out about the old one goes with it.
GRANT UPDATE (sealed_token, failures, problem) ON jenkins_controllers TO holdfast_app;
