package conform

var rcEndCases, rcRefusalCases, rcDepthCases []verbsCase
